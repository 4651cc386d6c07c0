"""One window of speech that an edge has ordered: its sound is taken, and its words are sent."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager

from cantata.contract.data.errors import first_error
from cantata.contract.data.transcripts import Transcript
from cantata.contract.transcription_service import Recognition, TranscriptionModel
from cantata.distributed.link.errors import ProtocolError
from cantata.distributed.link.stream import Stream
from cantata.distributed.messages import FrameKind
from cantata.distributed.replica.messaging import receive, send
from cantata.distributed.transcription_messages import (
    MoreSound,
    TranscribeOrder,
    WindowOpened,
    WindowTranscript,
)


async def transcribe(
    stream: Stream,
    order: TranscribeOrder,
    model: TranscriptionModel,
    place: AbstractContextManager[None],
) -> None:
    """Recognise it; returns when no stage holds any part of it.

    Args:
        place: entered while the window is open.

    Raises:
        CantataError: as of `TranscriptionModel.run` and its recognitions.
        ProtocolError: what came was no sound.
    """
    async with model.run(order.request) as window:
        with place:
            await send(stream, FrameKind.WINDOW, WindowOpened(window.request_id))
            transcript = await _recognize(stream, window)
            await send(stream, FrameKind.TRANSCRIPT, WindowTranscript(transcript, final=True))


async def _recognize(stream: Stream, window: Recognition) -> Transcript:
    """The transcript, once all words before it were sent."""
    try:
        async with asyncio.TaskGroup() as group:
            # Its failure must reach an edge that has no more sound for now.
            group.create_task(_send_partials(stream, window), name="transcribe:partials")
            return await _take_sound(stream, window)
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None


async def _send_partials(stream: Stream, window: Recognition) -> None:
    async for transcript in window.partials():
        await send(stream, FrameKind.TRANSCRIPT, WindowTranscript(transcript))


async def _take_sound(stream: Stream, window: Recognition) -> Transcript:
    while (piece := await receive(stream, FrameKind.MORE_SOUND, MoreSound)) is not None:
        if piece.samples.ndim != 1:
            raise ProtocolError(f"a window's sound arrived in the shape {piece.samples.shape}")
        if piece.recognize or len(piece.samples):
            await window.feed(piece.samples, recognize=piece.recognize)
        if piece.final:
            return await window.finish()
    await asyncio.Event().wait()  # the edge has left, and the session is about to cancel this
    raise AssertionError("unreachable")
