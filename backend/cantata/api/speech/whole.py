"""Utterances that are sent when all of their sound is there: each of a batch, and those that are
verified or signed before they are sent."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import Literal

from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.measured_run import open_utterance
from cantata.api.schemas import SpeechVerification
from cantata.api.speech.encoder import encoding
from cantata.api.speech.response import PROVENANCE_HEADER, describe_output
from cantata.api.speech.validated_request import ValidatedRequest
from cantata.api.speech.verification import (
    MAX_ATTEMPTS,
    choose_verifier,
    count_faults,
    count_words,
    verify_speech,
)
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.service import Samples

logger = logging.getLogger(__name__)

MAX_FILE_BYTES = 32 << 20
"""Largest file of one utterance; it is kept in memory until it is complete."""
VERIFICATION_HEADER = "x-verification"

Verify = bool | Literal["retry"]


@dataclass(frozen=True, slots=True)
class SpokenFile:
    """A text that was spoken."""

    order: ValidatedRequest
    data: bytearray
    duration_s: float
    verification: SpeechVerification | None


async def speak_file(
    context: ApiContext, order: ValidatedRequest, verify: Verify, *, batch: bool
) -> SpokenFile:
    """Speak a text into a file, and hear it if that is asked for. With `retry`, a model that
    samples speaks it again, with other seeds, until it is heard as written; the best counts.

    Raises:
        InvalidRequest: the file would be too large, or nothing here can verify it.
        CantataError: it cannot be spoken or heard.
    """
    if verify:
        choose_verifier(context)  # before any work
    request = replace(order.request, batch=batch)
    samples_differ = order.model.sampled or bool(request.temperature)
    attempts = MAX_ATTEMPTS if verify == "retry" and samples_differ else 1
    best: SpokenFile | None = None
    for attempt in range(attempts):
        seeded = request if attempt == 0 else replace(request, seed=(request.seed or 0) + attempt)
        spoken = await _speak(context, replace(order, request=seeded), verify)
        if spoken.verification is None:
            return spoken
        count_words(context, order.model.name, spoken.verification)
        best = spoken if best is None or _faults(spoken) < _faults(best) else best
        if not _faults(best):
            break
    assert best is not None
    assert best.verification is not None
    told = best.verification.model_copy(update={"attempts": attempt + 1})
    return replace(best, verification=told)


class WholeSpeech(StreamedResponse):
    """A whole file, signed if the server signs; what was heard of it is in a header, in JSON. A
    client that leaves ends the work."""

    def __init__(self, context: ApiContext, order: ValidatedRequest, verify: Verify) -> None:
        headers = describe_output(order)
        media_type = order.output.audio_format.media_type
        if context.signer is not None and context.signer.takes(media_type):
            signed = "self-signed" if context.signer.is_self_signed else "signed"
            headers[PROVENANCE_HEADER] = signed
        super().__init__(media_type, headers, context.settings.stall_timeout_s)
        self._context, self._order, self._verify = context, order, verify

    async def stream(self, request_id: str, body: Body) -> None:
        """Speak and hear; then write all of it.

        Raises:
            CantataError: it cannot be spoken or heard.
        """
        spoken = await speak_file(self._context, self._order, self._verify, batch=False)
        if spoken.verification is not None:
            # Headers are ASCII.
            body.add_header(VERIFICATION_HEADER, json.dumps(spoken.verification.model_dump()))
        try:
            await body.write_in_parts(bytes(spoken.data))
            await body.end()
        except ClientStalled:
            logger.info("the client stopped reading a whole file")


async def _speak(context: ApiContext, order: ValidatedRequest, verify: Verify) -> SpokenFile:
    data, kept = bytearray(), list[Samples]()
    async with encoding(order.output) as encoder:
        async with open_utterance(order.model, order.request, context.metrics) as spoken:
            async for chunk in spoken.run:
                data += await encoder.feed(chunk.samples)
                if verify:
                    kept.append(chunk.samples)
                _check_size(data)
        await encoder.finish_whole(data, context.signer)
    verification = None
    if verify:
        text, rate = order.request.text, order.model.sample_rate
        verification = await verify_speech(context, text, kept, rate)
    return SpokenFile(order, data, spoken.duration_s, verification)


def _faults(spoken: SpokenFile) -> int:
    return 0 if spoken.verification is None else count_faults(spoken.verification)


def _check_size(data: bytearray) -> None:
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequest(
            f"this text's file would have more than {MAX_FILE_BYTES >> 20} MiB; split the text, or "
            "use a compressed format or a lower sample_rate",
            param="input",
        )
