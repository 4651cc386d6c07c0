"""POST /v1/audio/speech: one text in, sound out while it is made."""

from __future__ import annotations

import asyncio
import logging

from fastapi import APIRouter
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from cantata.api.context import ApiContext, Context
from cantata.api.disconnect import until_disconnect
from cantata.api.framing import framing_of
from cantata.api.request_id import request_id_of
from cantata.api.schemas import SpeechBody, voice_id
from cantata.api.speaking import speaking
from cantata.audio.pcm import encode_s16le
from cantata.contract.errors import CantataError, InvalidRequest
from cantata.contract.request import SpeechRequest
from cantata.contract.service import ServedModel

logger = logging.getLogger(__name__)
router = APIRouter(prefix="/v1/audio", tags=["speech"])


@router.post("/speech", response_class=Response)
async def speech(body: SpeechBody, context: Context) -> Response:
    """Speak one text. See docs/protocol.md."""
    model = context.model(body.model)
    return SpeechResponse(context, model, body, speech_request(model, body))


def speech_request(model: ServedModel, body: SpeechBody) -> SpeechRequest:
    """The validated request of one model.

    Raises:
        InvalidRequest: no text, too much of it, no such voice, or a format that is not encoded.
    """
    body.check_format()
    voice = model.voice(voice_id(body.voice))
    check_text(model, body.input)
    return SpeechRequest(
        text=body.input,
        voice=voice.id,
        speed=body.speed,
        seed=body.seed,
        temperature=body.temperature,
        instructions=body.instructions,
    )


def check_text(model: ServedModel, text: str) -> None:
    """Refuse text that is empty or too long for one utterance.

    Raises:
        InvalidRequest: says which, and the limit.
    """
    if not text.strip():
        raise InvalidRequest("input is empty; send at least one character to speak", param="input")
    if len(text) > model.max_input_characters:
        raise InvalidRequest(
            f"input has {len(text)} characters; {model.name} speaks at most "
            f"{model.max_input_characters} at a time",
            param="input",
        )


class SpeechResponse(Response):
    """Streams one utterance.

    The head is sent with the first samples, not before: whatever goes wrong until then is still
    a proper HTTP error. The client's disconnect cancels the utterance and waits for its abort.
    """

    def __init__(
        self, context: ApiContext, model: ServedModel, body: SpeechBody, request: SpeechRequest
    ) -> None:
        self._framing = framing_of(model, body)
        super().__init__(
            media_type=self._framing.media_type,
            headers={
                "x-sample-rate": str(model.sample_rate),
                "x-channels": str(model.channels),
                "cache-control": "no-store",
                # Reverse proxies must not collect the stream.
                "x-accel-buffering": "no",
            },
        )
        # The length of a stream is not known; without this header the server sends chunks.
        del self.headers["content-length"]
        self._context = context
        self._model = model
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = request_id_of(scope)
        await until_disconnect(receive, self._run(request_id, send), f"speech:{request_id}")

    async def _run(self, request_id: str, send: Send) -> None:
        started = False
        send = _impatient(send, self._context.settings.stall_timeout_s)
        try:
            async with speaking(self._model, self._request, self._context.metrics) as spoken:
                logger.debug("%s speaks as %s", request_id, spoken.request_id)
                async for samples in spoken:
                    data = encode_s16le(samples)
                    if not started:
                        started = True
                        data = self._framing.head() + self._framing.audio(data)
                        await self._send_head(send)
                    else:
                        data = self._framing.audio(data)
                    await _send_body(send, data)
        except _ClientStalled:
            logger.info("%s was left unread; its utterance is aborted", request_id)
            return
        except CantataError as error:
            if not started:
                raise
            logger.warning("%s broke off after its first sound: %s", request_id, error)
            await self._break_off(send, error)
            return
        if not started:
            await self._send_head(send)
            await _send_body(send, self._framing.head())
        await _send_body(send, self._framing.end(spoken), more=False)

    async def _send_head(self, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": 200, "headers": list(self.raw_headers)}
        )

    async def _break_off(self, send: Send, error: CantataError) -> None:
        """Tell the client where the framing can; else end without the last chunk, by which HTTP
        says that a body is incomplete."""
        last_words = self._framing.error(error)
        if last_words is not None:
            await _send_body(send, last_words, more=False)


class _ClientStalled(ConnectionError):
    """The client keeps its connection open and takes nothing."""


def _impatient(send: Send, timeout_s: float) -> Send:
    """`send` that gives up on a client which would hold its place in the stages for ever."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await send(message)
        except TimeoutError as error:
            raise _ClientStalled from error

    return send_in_time


async def _send_body(send: Send, data: bytes, *, more: bool = True) -> None:
    if data or not more:
        await send({"type": "http.response.body", "body": data, "more_body": more})
