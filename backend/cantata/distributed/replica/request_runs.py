"""Serves an edge's requests: speaks, answers, draws or transcribes, and streams the output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, closing

from cantata.contract.chat_service import ChatModel
from cantata.contract.data.errors import CantataError, get_first_error
from cantata.contract.data.transcripts import Transcript
from cantata.contract.image_service import ImageModel
from cantata.contract.service import SpeechModel
from cantata.contract.transcription_service import Recognition, TranscriptionModel
from cantata.distributed.chat_messages import Answering, AnswerRequest, sent
from cantata.distributed.link.errors import ProtocolError
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.messages import (
    DrawingBegun,
    DrawRequest,
    FrameKind,
    MoreSound,
    MoreText,
    Opened,
    SpeakRequest,
    TranscribeRequest,
    WindowOpened,
    WindowTranscript,
    get_kind,
    to_ages,
)
from cantata.distributed.replica.messaging import SoundBatcher, receive, send


async def speak(stream: LinkStream, message: SpeakRequest, model: SpeechModel) -> None:
    """Speak it; returns when no stage holds any part of it. Raises CantataError: as of
    `SpeechModel.run` and its utterances."""
    more_text = _read_text(stream) if message.open_text else None
    speaking = model.run(message.wanted, more_text=more_text)
    async with speaking as utterance:
        opened = Opened(utterance.request_id, to_ages(utterance.milestones))
        await send(stream, FrameKind.OPENED, opened)
        batcher = SoundBatcher(stream, model.sample_rate, joins=not message.repeated)
        with closing(batcher):
            try:
                async for chunk in utterance:
                    await batcher.send(chunk)
            except CantataError:
                await batcher.flush()
                raise
            await batcher.flush()


async def _read_text(stream: LinkStream) -> AsyncGenerator[str, None]:
    """The rest of an open text; the edge keeps what the model does not take yet."""
    while (
        piece := await receive(stream, FrameKind.TEXT, MoreText)
    ) is not None and not piece.final:
        yield piece.text


async def answer(stream: LinkStream, message: AnswerRequest, model: ChatModel) -> None:
    """Answer it; returns when no stage holds any part of it.

    Raises:
        CantataError: as of `ChatModel.run` and its answers.
        ProtocolError: the message is no request.
    """
    async with model.run(message.request) as reply:
        started = Answering(reply.request_id, reply.prompt_tokens, to_ages(reply.milestones))
        await send(stream, FrameKind.ANSWERING, started)
        async for event in reply:
            kind, body = sent(event)
            await send(stream, kind, body)


async def draw(stream: LinkStream, message: DrawRequest, model: ImageModel) -> None:
    """Draw it; returns when no stage holds any part of it. Raises CantataError: as of
    `ImageModel.run` and its drawings."""
    async with model.run(message.request) as drawing:
        started = DrawingBegun(
            drawing.request_id,
            drawing.width,
            drawing.height,
            drawing.steps,
            drawing.prompt_tokens,
            drawing.reference_tokens,
        )
        await send(stream, FrameKind.DRAWING, started)
        async for event in drawing:
            await send(stream, get_kind(event), event)


async def transcribe(
    stream: LinkStream,
    message: TranscribeRequest,
    model: TranscriptionModel,
    place: AbstractContextManager[None],
) -> None:
    """Recognize it; returns when no stage holds any part of it.

    Args:
        place: entered while the window is open.

    Raises:
        CantataError: as of `TranscriptionModel.run` and its recognitions.
        ProtocolError: what came was no sound.
    """
    async with model.run(message.request) as window:
        with place:
            await send(stream, FrameKind.WINDOW, WindowOpened(window.request_id))
            transcript = await _recognize(stream, window)
            await send(stream, FrameKind.TRANSCRIPT, WindowTranscript(transcript, final=True))


async def _recognize(stream: LinkStream, window: Recognition) -> Transcript:
    """The transcript, once all words before it were sent."""
    try:
        async with asyncio.TaskGroup() as group:
            # Its failure must reach an edge that has no more sound for now.
            group.create_task(_send_partials(stream, window), name="transcribe:partials")
            return await _take_sound(stream, window)
    except BaseExceptionGroup as errors:
        raise get_first_error(errors) from None


async def _send_partials(stream: LinkStream, window: Recognition) -> None:
    async for transcript in window.partials():
        await send(stream, FrameKind.TRANSCRIPT, WindowTranscript(transcript))


async def _take_sound(stream: LinkStream, window: Recognition) -> Transcript:
    while (piece := await receive(stream, FrameKind.MORE_SOUND, MoreSound)) is not None:
        if piece.samples.ndim != 1:
            raise ProtocolError(f"a window's sound arrived in the shape {piece.samples.shape}")
        if piece.recognize or len(piece.samples):
            await window.feed(piece.samples, recognize=piece.recognize)
        if piece.final:
            return await window.finish()
    await asyncio.Event().wait()  # the edge has left, and the session is about to cancel this
    raise AssertionError("unreachable")
