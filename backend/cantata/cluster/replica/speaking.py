"""One text that an edge has ordered: it is spoken, and the sound is sent while it is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from cantata.cluster.link.stream import Stream
from cantata.cluster.messages import Kind, MoreText, Opened, Sound, SpeakOrder, ages_of
from cantata.cluster.replica.telling import hear, tell
from cantata.contract.service import ServedModel


async def speak(stream: Stream, order: SpeakOrder, model: ServedModel) -> None:
    """Speak it; returns when no stage holds any part of it.

    Raises:
        CantataError: as of `ServedModel.speak` and its utterances.
    """
    more_text = _text_of(stream) if order.open_text else None
    speaking = model.speak(order.request, batch=order.batch, more_text=more_text)
    async with speaking as utterance:
        opened = Opened(utterance.request_id, ages_of(utterance.milestones))
        await tell(stream, Kind.OPENED, opened)
        async for chunk in utterance:
            await tell(stream, Kind.SOUND, Sound.of(chunk))


async def _text_of(stream: Stream) -> AsyncGenerator[str, None]:
    """The rest of an open text; the edge keeps what the model does not take yet."""
    while (piece := await hear(stream, Kind.TEXT, MoreText)) is not None and not piece.final:
        yield piece.text
