"""The response that streams one utterance, and its encoder, which never blocks the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.measured_run import (
    SERVER_TIMING_HEADER,
    MeasuredRun,
    format_server_timing,
    open_utterance,
)
from cantata.api.schemas import SpeechVerification
from cantata.api.speech.framing import Framing
from cantata.api.speech.validated_request import ValidatedRequest
from cantata.audio.encoding import Encoder, has_tags, open_encoder
from cantata.audio.formats import OutputFormat
from cantata.contract.data.errors import CantataError
from cantata.contract.service import Samples, SpeechChunk
from cantata.media.signing import FileSigner
from cantata.metrics import Metrics


@asynccontextmanager
async def encoding(output: OutputFormat) -> AsyncIterator[ResponseEncoder]:
    """An encoder that is freed when the block is left, even by a cancellation."""
    encoder = ResponseEncoder(await asyncio.to_thread(open_encoder, output), output)
    try:
        yield encoder
    finally:
        encoder.close()


class ResponseEncoder:
    """Encodes short pieces at once and longer ones in a worker thread, one at a time,
    because the caller awaits each piece."""

    def __init__(self, encoder: Encoder, output: OutputFormat) -> None:
        self._encoder = encoder
        self._media_type = output.audio_format.media_type
        self._inline_samples = round(output.audio_format.inline_s * output.model_rate)
        self._job: asyncio.Future[bytes] | None = None

    async def feed(self, samples: Samples) -> bytes:
        """Add samples; returns the complete bytes of the file so far, maybe none."""
        if len(samples) <= self._inline_samples:
            return self._encoder.feed(samples)
        return await self._run_in_thread(lambda: self._encoder.feed(samples))

    async def finish(self) -> bytes:
        return await self._run_in_thread(self._encoder.finish)

    async def finish_whole(self, file: bytearray, signer: FileSigner | None) -> None:
        """Add the rest to a file that was kept, write its true length at its beginning, and sign
        it, if there is a signer and its format can be signed."""
        file += await self.finish()
        head = self._encoder.encode_head(len(file))
        file[: len(head)] = head
        if signer is not None and signer.takes(self._media_type):
            whole = bytes(file)
            file[:] = await self._run_in_thread(lambda: signer.sign(whole, self._media_type))

    def close(self) -> None:
        """Free everything now, or as soon as a thread that is still encoding has finished."""
        if self._job is None or self._job.done():
            self._encoder.close()
        else:
            self._job.add_done_callback(lambda _: self._encoder.close())

    async def _run_in_thread(self, work: Callable[[], bytes]) -> bytes:
        self._job = asyncio.get_running_loop().run_in_executor(None, work)
        # A thread cannot be cancelled: its objects must live until it is done.
        return await asyncio.shield(self._job)


logger = logging.getLogger(__name__)

PROVENANCE_HEADER = "x-provenance"
Verifier = Callable[[Sequence[Samples]], Awaitable[SpeechVerification]]
"""Transcribes an utterance's samples, and compares that with its text."""


class SpeechResponse(StreamedResponse):
    """Streams one utterance. The head is sent with the first samples."""

    def __init__(
        self,
        validated: ValidatedRequest,
        framing: Framing,
        metrics: Metrics,
        stall_timeout_s: float,
        verify: Verifier | None = None,
    ) -> None:
        super().__init__(framing.media_type, describe_output(validated), stall_timeout_s)
        self._validated = validated
        self._framing = framing
        self._metrics = metrics
        self._verify = verify

    async def stream(self, request_id: str, body: Body) -> None:
        """Write the sound as it is made. Raises CantataError: the request failed before its first
        sound."""
        try:
            await self._speak(request_id, body)
        except ClientStalled:
            logger.info("the client stopped reading; its utterance is aborted")
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("failed after its first sound: %s", error)
            # If the framing cannot express it, the body stays incomplete.
            closing = self._framing.frame_error(error)
            if closing is not None:
                await body.end(closing)

    async def _speak(self, request_id: str, body: Body) -> None:
        validated, framing = self._validated, self._framing
        kept: list[Samples] = []
        async with encoding(validated.output) as encoder:
            async with open_utterance(validated.model, validated.request, self._metrics) as spoken:
                async for chunk in spoken.run:
                    if self._verify is not None:
                        kept.append(chunk.samples)
                    sound = framing.frame_audio(await encoder.feed(chunk.samples))
                    if not body.started:
                        _add_timeline(spoken, body)
                    await body.write(framing.frame_words(chunk.words) + sound)
            rest = framing.frame_audio(await encoder.finish())
        if self._verify is not None:
            await body.write(rest)
            rest = framing.frame_verification(await self._verify(kept))
        await body.end(rest + framing.end(spoken.duration_s))


def describe_output(validated: ValidatedRequest) -> dict[str, str]:
    """Headers with the sound's format, whether the file says that it is synthetic, and ignored
    fields."""
    headers = {
        "x-sample-rate": str(validated.output.sample_rate),
        "x-channels": str(validated.output.channels),
    }
    headers[PROVENANCE_HEADER] = "tags" if has_tags(validated.output) else "none"
    if validated.ignored:
        headers["x-ignored"] = ", ".join(validated.ignored)
    return headers


def _add_timeline(spoken: MeasuredRun[SpeechChunk], body: Body) -> None:
    """Add the timing header; the first sound has just been encoded."""
    order_s = spoken.asked_at - body.asked_at
    encode_s = time.monotonic() - spoken.asked_at - sum(spoken.timeline.values())
    timeline = {"order": order_s, **spoken.timeline, "encode": encode_s}
    body.add_header(SERVER_TIMING_HEADER, format_server_timing(timeline))
