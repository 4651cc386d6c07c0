"""One text that an edge has ordered: it is spoken, and the sound is sent while it is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import closing

from cantata.contract.data.errors import CantataError
from cantata.contract.service import SpeechModel
from cantata.distributed.link.stream import Stream
from cantata.distributed.messages import FrameKind, MoreText, Opened, SpeakOrder, to_ages
from cantata.distributed.replica.messaging import receive, send
from cantata.distributed.replica.sound_batcher import SoundBatcher


async def speak(stream: Stream, order: SpeakOrder, model: SpeechModel) -> None:
    """Speak it; returns when no stage holds any part of it.

    Raises:
        CantataError: as of `SpeechModel.run` and its utterances.
    """
    more_text = _read_text(stream) if order.open_text else None
    speaking = model.run(order.wanted, more_text=more_text)
    async with speaking as utterance:
        opened = Opened(utterance.request_id, to_ages(utterance.milestones))
        await send(stream, FrameKind.OPENED, opened)
        batcher = SoundBatcher(stream, model.sample_rate, joins=not order.repeated)
        with closing(batcher):
            try:
                async for chunk in utterance:
                    await batcher.send(chunk)
            except CantataError:
                await batcher.flush()
                raise
            await batcher.flush()


async def _read_text(stream: Stream) -> AsyncGenerator[str, None]:
    """The rest of an open text; the edge keeps what the model does not take yet."""
    while (
        piece := await receive(stream, FrameKind.TEXT, MoreText)
    ) is not None and not piece.final:
        yield piece.text
