"""The response that streams one utterance."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.measured_run import MeasuredRun, open_utterance
from cantata.api.schemas import SpeechVerification
from cantata.api.speech.encoder import encoding
from cantata.api.speech.framing import Framing
from cantata.api.speech.validated_request import ValidatedRequest
from cantata.api.timeline import SERVER_TIMING_HEADER, server_timing
from cantata.audio.encoding import has_tags
from cantata.contract.data.errors import CantataError
from cantata.contract.service import Samples, SpeechChunk
from cantata.metrics import Metrics

logger = logging.getLogger(__name__)

PROVENANCE_HEADER = "x-provenance"
Verifier = Callable[[Sequence[Samples]], Awaitable[SpeechVerification]]
"""Hears an utterance's samples."""


class SpeechResponse(StreamedResponse):
    """Streams one utterance. The head is sent with the first samples."""

    def __init__(
        self,
        order: ValidatedRequest,
        framing: Framing,
        metrics: Metrics,
        stall_timeout_s: float,
        verify: Verifier | None = None,
    ) -> None:
        super().__init__(framing.media_type, describe_output(order), stall_timeout_s)
        self._order = order
        self._framing = framing
        self._metrics = metrics
        self._verify = verify

    async def stream(self, request_id: str, body: Body) -> None:
        """Write the sound as it is made.

        Raises:
            CantataError: it failed before its first sound.
        """
        try:
            await self._speak(request_id, body)
        except ClientStalled:
            logger.info("the client stopped reading; its utterance is aborted")
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("failed after its first sound: %s", error)
            # If the framing cannot express it, the body stays incomplete.
            closing = self._framing.error(error)
            if closing is not None:
                await body.end(closing)

    async def _speak(self, request_id: str, body: Body) -> None:
        order, framing = self._order, self._framing
        kept: list[Samples] = []
        async with encoding(order.output) as encoder:
            async with open_utterance(order.model, order.request, self._metrics) as spoken:
                async for chunk in spoken.run:
                    if self._verify is not None:
                        kept.append(chunk.samples)
                    sound = framing.audio(await encoder.feed(chunk.samples))
                    if not body.started:
                        _add_timeline(spoken, body)
                    await body.write(framing.words(chunk.words) + sound)
            rest = framing.audio(await encoder.finish())
        if self._verify is not None:
            await body.write(rest)
            rest = framing.verification(await self._verify(kept))
        await body.end(rest + framing.end(spoken.duration_s))


def describe_output(order: ValidatedRequest) -> dict[str, str]:
    """Headers that tell the sound's format, what it says of its origin, and what the model
    ignores."""
    headers = {
        "x-sample-rate": str(order.output.sample_rate),
        "x-channels": str(order.output.channels),
    }
    headers[PROVENANCE_HEADER] = "tags" if has_tags(order.output) else "none"
    if order.ignored:
        headers["x-ignored"] = ", ".join(order.ignored)
    return headers


def _add_timeline(spoken: MeasuredRun[SpeechChunk], body: Body) -> None:
    """Add the timing header; the first sound has just been encoded."""
    order_s = spoken.asked_at - body.asked_at
    encode_s = time.monotonic() - spoken.asked_at - sum(spoken.timeline.values())
    timeline = {"order": order_s, **spoken.timeline, "encode": encode_s}
    body.add_header(SERVER_TIMING_HEADER, server_timing(timeline))
