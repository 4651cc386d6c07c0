"""One conversation that an edge has ordered: the answer is made, and sent while it is made."""

from __future__ import annotations

from cantata.contract.chat_service import ChatModel
from cantata.distributed.chat_messages import Answering, AnswerOrder, sent
from cantata.distributed.link.stream import Stream
from cantata.distributed.messages import FrameKind, to_ages
from cantata.distributed.replica.messaging import send


async def answer(stream: Stream, order: AnswerOrder, model: ChatModel) -> None:
    """Answer it; returns when no stage holds any part of it.

    Raises:
        CantataError: as of `ChatModel.run` and its answers.
        ProtocolError: the order is none.
    """
    async with model.run(order.request) as reply:
        started = Answering(reply.request_id, reply.prompt_tokens, to_ages(reply.milestones))
        await send(stream, FrameKind.ANSWERING, started)
        async for event in reply:
            kind, message = sent(event)
            await send(stream, kind, message)
