"""Speech checked before it is believed: a model that transcribes hears what was spoken, and each
word of the text is compared with what was heard.

The consent that comes with a recording is heard, too, where the operator asks for that.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal, TypeVar

import numpy as np
import soundfile
from numpy.typing import NDArray

from cantata.api.context import ApiContext
from cantata.api.schemas import SpeechVerification, VerifiedWord
from cantata.api.transcription.body import SentFile, TranscriptionBody
from cantata.api.transcription.parts import build_request, transcribe_file
from cantata.contract.data.errors import (
    ConsentMissing,
    ConsentRefused,
    InvalidRequest,
    ModelNotFound,
)
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata.contract.data.transcripts import TranscribedWord
from cantata.contract.service import Samples, SpeechModel
from cantata.contract.transcription_service import TranscriptionModel
from cantata.references.consent import ConsentRecord, check_attestation, record_attestation
from cantata.speech_input.recordings import RecordingProgress

T = TypeVar("T")
Verify = bool | Literal["retry"]

MAX_ATTEMPTS = 3
"""Times that a text is spoken, if it is to be spoken again where words are missing."""
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_SMALL_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen", "twenty"),
)

_SPELLINGS = {"dr": "doctor", "mr": "mister", "mrs": "missus", "vs": "versus", "okay": "ok"}
"""A recognizer writes either."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word in the form in which words are compared."""

    bare: str
    start: int
    """Characters of the text before it, as the next."""
    end: int
    probability: float = 1.0


def choose_verifier(context: ApiContext) -> TranscriptionModel:
    """The model that hears what is verified. Raises InvalidRequest: there is none."""
    try:
        return context.get_transcription_model(None)
    except ModelNotFound:
        raise InvalidRequest(
            "verify needs a model that transcribes, and this server has none", "verify"
        ) from None


async def verify_speech(
    context: ApiContext, text: str, samples: Sequence[Samples], sample_rate: int
) -> SpeechVerification:
    """What is heard of a text that was spoken.

    Args:
        samples: [N, C] each, in -1..1: all of its sound.
        sample_rate: Hz.

    Raises:
        InvalidRequest: no model here transcribes.
        CantataError: the sound cannot be recognized.
    """
    model = choose_verifier(context)
    await context.cascade.prepare()
    if not sum(map(len, samples)):
        return compare_words(text, ())
    file = io.BytesIO()
    mono: NDArray[np.float32] = np.concatenate([part.mean(axis=1) for part in samples])
    soundfile.write(file, mono, sample_rate, format="WAV", subtype="PCM_16")
    file.seek(0)
    body = TranscriptionBody()
    heard: list[TranscribedWord] = []
    parts = transcribe_file(
        context.recordings,
        model,
        SentFile(file, "input"),
        body,
        build_request(body, translate=False),
        RecordingProgress(),
    )
    async with aclosing(parts):
        async for part in parts:
            heard += part.transcript.words
    return compare_words(text, heard)


async def speak_verified(
    context: ApiContext,
    model: SpeechModel,
    request: SpeechRequest,
    verify: Verify,
    speak: Callable[[SpeechRequest], Awaitable[tuple[T, Sequence[Samples]]]],
) -> tuple[T, SpeechVerification | None]:
    """Speak a text, and hear it if that is asked for. With `retry`, a model that samples speaks it
    again, with other seeds, until it is heard as written; the best attempt counts.

    Args:
        verify: whether to hear it, and whether to speak it again.
        speak: returns the result, and its sound as `verify_speech` takes it.

    Raises:
        InvalidRequest: nothing here can verify it.
        CantataError: it cannot be spoken or heard.
    """
    if not verify:
        return (await speak(request))[0], None
    choose_verifier(context)  # before any work
    may_differ = model.sampled or bool(request.temperature)
    best: tuple[T, SpeechVerification] | None = None
    attempts = MAX_ATTEMPTS if verify == "retry" and may_differ else 1
    for attempt in range(attempts):
        seeded = request if attempt == 0 else replace(request, seed=(request.seed or 0) + attempt)
        result, samples = await speak(seeded)
        found = await verify_speech(context, request.text, samples, model.sample_rate)
        count_words(context, model.name, found)
        if best is None or count_faults(found) < count_faults(best[1]):
            best = result, found
        if not count_faults(best[1]):
            break
    assert best is not None
    return best[0], best[1].model_copy(update={"attempts": attempt + 1})


def compare_words(text: str, heard: Sequence[TranscribedWord]) -> SpeechVerification:
    """Each word of a text beside what was heard.

    A word that was heard has the recognizer's probability as its confidence, one that was not has
    0. Words that differ only in how they are written, such as `afternoon` and `after noon`, or `20`
    and `twenty`, are equal.
    """
    wanted = [_Word(_strip(one[0]), *one.span()) for one in _WORD.finditer(text)]
    got = [
        _Word(_strip(one[0]), 0, 0, word.probability)
        for word in heard
        for one in _WORD.finditer(word.text)
    ]
    words: list[VerifiedWord] = []
    extra: list[str] = []
    bare = [word.bare for word in wanted], [word.bare for word in got]
    for change, a, b, c, d in SequenceMatcher(None, *bare, autojunk=False).get_opcodes():
        is_equal = change == "equal" or "".join(bare[0][a:b]) == "".join(bare[1][c:d])
        said = " ".join(bare[1][c:d])
        for number, word in enumerate(wanted[a:b]):
            likely = got[c + number] if change == "equal" else None
            likelihood = min((one.probability for one in got[c:d]), default=0.0)
            confidence = likely.probability if likely else likelihood if is_equal else 0.0
            words.append(
                VerifiedWord(
                    text=text[word.start : word.end],
                    text_start=word.start,
                    text_end=word.end,
                    confidence=round(confidence, 4),
                    heard=likely.bare if likely else said,
                )
            )
        if change == "insert":
            extra += bare[1][c:d]
    missing = [word.text for word in words if word.confidence == 0]
    return SpeechVerification(
        heard=" ".join(word.text for word in heard), words=words, missing=missing, extra=extra
    )


def count_faults(found: SpeechVerification) -> int:
    """Words that are missing or were not asked for."""
    return len(found.missing) + len(found.extra)


def count_words(context: ApiContext, model: str, found: SpeechVerification) -> None:
    context.metrics.transcriptions.count_verified(
        model, len(found.words), len(found.missing), len(found.extra)
    )


def _strip(word: str) -> str:
    plain = word.lower().replace("'", "").replace("\u2019", "")
    if plain.isascii() and plain.isdigit() and int(plain) < len(_SMALL_NUMBERS):
        return _SMALL_NUMBERS[int(plain)]
    return _SPELLINGS.get(plain, plain)


async def check_consent(
    context: ApiContext,
    reference: ReferenceAudio,
    attested_by: str | None,
    consent_id: str | None,
    spoken: ReferenceAudio | None,
) -> ConsentRecord | None:
    """The consent to keep with a voice; None: the server asks for none.

    Args:
        attested_by: who answers for the consent, or gives it.
        consent_id: of the statement that was spoken.

    Raises:
        ConsentMissing: something that this server asks for is not there, or not valid any more.
        ConsentRefused: other words, or another speaker.
        CantataError: the statement cannot be heard.
    """
    match context.settings.references.consent:
        case "none":
            return None
        case "attest":
            return record_attestation(attested_by)
    by = check_attestation(attested_by)
    if consent_id is None or spoken is None:
        raise ConsentMissing(
            "this server asks for a spoken consent: get a statement from POST "
            "/v1/audio/voices/consents, and send its id as consent_id and the speaker's recording "
            "of it as consent_audio",
            "consent_audio" if consent_id else "consent_id",
        )
    statement = context.statements.take(consent_id)
    await _check_speaker(context, reference, spoken)
    found = await verify_speech(context, statement.text, [spoken.samples], spoken.sample_rate)
    if not statement.is_heard_in([(word.text, word.confidence > 0) for word in found.words]):
        raise ConsentRefused(
            f"the statement was not heard in consent_audio, but: {found.heard!r}; get another and "
            "speak it clearly",
            "consent_audio",
        )
    return ConsentRecord(
        kind="spoken",
        by=by,
        statement=statement.text,
        given_at=int(time.time()),
        heard=found.heard,
    )


def check_recording_consent(
    context: ApiContext, recordings: object | None, attested_by: str | None
) -> None:
    """Whether a request may bring a recording of a speaker with it. Raises ConsentMissing: nobody
    answers for it, or it has to be uploaded with a spoken consent."""
    mode = context.settings.references.consent
    if recordings is None or mode == "none":
        return
    if mode == "spoken":
        raise ConsentMissing(
            "this server asks for a spoken consent: upload the voice to /v1/audio/voices with it, "
            "and use its name as voice",
            "ref_audio",
        )
    check_attestation(attested_by)


async def _check_speaker(
    context: ApiContext, reference: ReferenceAudio, spoken: ReferenceAudio
) -> None:
    for model in context.service.models.values():
        is_same = await model.may_be_same_speaker(reference, spoken)
        if is_same:
            return
        if is_same is False:
            raise ConsentRefused(
                "consent_audio is not of the speaker of audio_sample; record both alike",
                "consent_audio",
            )
    raise ConsentRefused(
        "no model of this server tells speakers apart, so it accepts no spoken consent",
        "consent_audio",
    )
