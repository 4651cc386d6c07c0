"""One conversation that an edge has ordered: the answer is made, and sent while it is made."""

from __future__ import annotations

from cantata.cluster.chat_messages import Answering, AnswerOrder, sent
from cantata.cluster.link.stream import Stream
from cantata.cluster.messages import Kind, ages_of
from cantata.cluster.replica.telling import tell
from cantata.contract.chat_service import ChatModel


async def answer(stream: Stream, order: AnswerOrder, model: ChatModel) -> None:
    """Answer it; returns when no stage holds any part of it.

    Raises:
        CantataError: as of `ChatModel.answer` and its answers.
        Garbage: the order is none.
    """
    async with model.answer(order.request) as made:
        begun = Answering(made.request_id, made.prompt_tokens, ages_of(made.milestones))
        await tell(stream, Kind.ANSWERING, begun)
        async for event in made:
            kind, message = sent(event)
            await tell(stream, kind, message)
