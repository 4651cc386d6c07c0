"""Utterances that are sent when all of their sound is there: each of a batch, those that are
verified or signed before they are sent, and those that are wrapped into one object."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.measured_run import open_utterance
from cantata.api.schemas import SpeechVerification
from cantata.api.speech.framing import Framing
from cantata.api.speech.response import PROVENANCE_HEADER, describe_output, encoding
from cantata.api.speech.validated_request import ValidatedRequest
from cantata.api.speech.verification import Verify, speak_verified
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import Samples, SpokenWord

logger = logging.getLogger(__name__)

MAX_FILE_BYTES = 32 << 20
"""Largest file of one utterance; it is kept in memory until it is complete."""
VERIFICATION_HEADER = "x-verification"


@dataclass(frozen=True, slots=True)
class SpokenFile:
    validated: ValidatedRequest
    data: bytearray
    duration_s: float
    words: tuple[SpokenWord, ...] = ()
    """With their times; none if the model does not tell them."""
    verification: SpeechVerification | None = None


async def speak_file(
    context: ApiContext, validated: ValidatedRequest, verify: Verify, *, batch: bool
) -> SpokenFile:
    """Speak a text into a file, and hear it if that is asked for (`speak_verified`).

    Raises:
        InvalidRequest: the file would be too large, or nothing here can verify it.
        CantataError: it cannot be spoken or heard.
    """

    async def speak(request: SpeechRequest) -> tuple[SpokenFile, Sequence[Samples]]:
        return await _speak(context, replace(validated, request=request), keep=bool(verify))

    request = replace(validated.request, batch=batch)
    spoken, found = await speak_verified(context, validated.model, request, verify, speak)
    return replace(spoken, verification=found)


class WholeSpeech(StreamedResponse):
    """A whole file, signed if the server signs; what was heard of it is in a header, in JSON. A
    client that leaves ends the work."""

    def __init__(self, context: ApiContext, validated: ValidatedRequest, verify: Verify) -> None:
        media_type = validated.output.audio_format.media_type
        headers = _describe_whole(context, validated)
        super().__init__(media_type, headers, context.settings.stall_timeout_s)
        self._context, self._validated, self._verify = context, validated, verify

    async def stream(self, request_id: str, body: Body) -> None:
        """Speak and hear; then write all of it. Raises CantataError: it cannot be spoken or
        heard."""
        validated = self._validated
        spoken = await speak_file(
            self._context, validated, self._verify, batch=validated.request.batch
        )
        if spoken.verification is not None:
            # Headers are ASCII.
            body.add_header(VERIFICATION_HEADER, json.dumps(spoken.verification.model_dump()))
        try:
            await body.write_in_parts(bytes(spoken.data))
            await body.end()
        except ClientStalled:
            logger.info("the client stopped reading a whole file")


class WrappedSpeech(StreamedResponse):
    """A whole file, signed if the server signs, and the times of its words, in one object."""

    def __init__(self, context: ApiContext, validated: ValidatedRequest, framing: Framing) -> None:
        headers = _describe_whole(context, validated)
        super().__init__(framing.media_type, headers, context.settings.stall_timeout_s)
        self._context, self._validated, self._framing = context, validated, framing

    async def stream(self, request_id: str, body: Body) -> None:
        """Speak; then write all of it. Raises CantataError: it cannot be spoken."""
        validated, framing = self._validated, self._framing
        spoken = await speak_file(self._context, validated, False, batch=validated.request.batch)
        wrapped = framing.frame_words(spoken.words) + framing.frame_audio(bytes(spoken.data))
        try:
            await body.write_in_parts(wrapped + framing.end(spoken.duration_s))
            await body.end()
        except ClientStalled:
            logger.info("the client stopped reading a whole file")


def _describe_whole(context: ApiContext, validated: ValidatedRequest) -> dict[str, str]:
    headers = describe_output(validated)
    signer = context.signer
    if signer is not None and signer.takes(validated.output.audio_format.media_type):
        headers[PROVENANCE_HEADER] = "self-signed" if signer.is_self_signed else "signed"
    return headers


async def _speak(
    context: ApiContext, validated: ValidatedRequest, *, keep: bool
) -> tuple[SpokenFile, Sequence[Samples]]:
    """A file; `keep`: and its samples."""
    data, kept, words = bytearray(), list[Samples](), list[SpokenWord]()
    async with encoding(validated.output) as encoder:
        async with open_utterance(validated.model, validated.request, context.metrics) as spoken:
            async for chunk in spoken.run:
                data += await encoder.feed(chunk.samples)
                words += chunk.words
                if keep:
                    kept.append(chunk.samples)
                _check_size(data)
        await encoder.finish_whole(data, context.signer)
    return SpokenFile(validated, data, spoken.duration_s, tuple(words)), kept


def _check_size(data: bytearray) -> None:
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequest(
            f"this text's file would have more than {MAX_FILE_BYTES >> 20} MiB; split the text, or "
            "use a compressed format or a lower sample_rate",
            param="input",
        )
