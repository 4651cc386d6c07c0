"""POST /v1/audio/speech: one text in, sound out while it is made."""

from __future__ import annotations

import logging
import time

from fastapi import APIRouter
from starlette.responses import Response

from cantata.api.context import Context
from cantata.api.encoder import encoding
from cantata.api.framing import EVENT_TYPES, SSE_MEDIA_TYPE, Framing, framing_of
from cantata.api.openapi import either, events, sound
from cantata.api.order import Order, order_of
from cantata.api.schemas import SpeechBody
from cantata.api.speaking import Speech, speaking
from cantata.api.streamed import Body, ClientStalled, StreamedResponse
from cantata.api.timeline import SERVER_TIMING_HEADER, server_timing
from cantata.audio.formats import FORMATS
from cantata.contract.errors import CantataError
from cantata.metrics import Metrics

logger = logging.getLogger(__name__)
router = APIRouter(prefix="/v1/audio", tags=["speech"])


@router.post(
    "/speech",
    response_class=Response,
    responses=either(sound(FORMATS.values()), events(SSE_MEDIA_TYPE, EVENT_TYPES)),
)
async def speech(body: SpeechBody, context: Context) -> Response:
    """Speak one text. See docs/protocol.md."""
    body.check_timestamps()
    order = await order_of(context, context.model(body.model), body)
    framing = framing_of(body, order.output.audio_format)
    return SpeechResponse(order, framing, context.metrics, context.settings.stall_timeout_s)


class SpeechResponse(StreamedResponse):
    """Streams one utterance. The head is sent with the first samples."""

    def __init__(
        self, order: Order, framing: Framing, metrics: Metrics, stall_timeout_s: float
    ) -> None:
        headers = {
            "x-sample-rate": str(order.output.sample_rate),
            "x-channels": str(order.output.channels),
        }
        if order.ignored:
            headers["x-ignored"] = ", ".join(order.ignored)
        super().__init__(framing.media_type, headers, stall_timeout_s)
        self._order = order
        self._framing = framing
        self._metrics = metrics

    async def stream(self, request_id: str, body: Body) -> None:
        """Write the sound as it is made.

        Raises:
            CantataError: it could not begin.
        """
        try:
            await self._speak(request_id, body)
        except ClientStalled:
            logger.info("it was left unread; its utterance is aborted")
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("it broke off after its first sound: %s", error)
            # Where the framing has no word for it, the body stays without its end.
            last_words = self._framing.error(error)
            if last_words is not None:
                await body.end(last_words)

    async def _speak(self, request_id: str, body: Body) -> None:
        order, framing = self._order, self._framing
        async with encoding(order.output) as encoder:
            async with speaking(order.model, order.request, self._metrics) as spoken:
                async for chunk in spoken:
                    sound = framing.audio(await encoder.feed(chunk.samples))
                    if not body.started:
                        _tell_timeline(spoken, body)
                    await body.write(framing.words(chunk.words) + sound)
            rest = framing.audio(await encoder.finish())
        await body.end(rest + framing.end(spoken.duration_s))


def _tell_timeline(spoken: Speech, body: Body) -> None:
    """Put where the time went into the head; the first sound has just been encoded."""
    order_s = spoken.asked_at - body.asked_at
    encode_s = time.monotonic() - spoken.asked_at - sum(spoken.timeline.values())
    timeline = {"order": order_s, **spoken.timeline, "encode": encode_s}
    body.add_header(SERVER_TIMING_HEADER, server_timing(timeline))
