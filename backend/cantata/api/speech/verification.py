"""Speech checked before it is believed: a model that transcribes hears what was spoken, and each
word of the text is compared with what was heard."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
import soundfile
from numpy.typing import NDArray

from cantata.api.context import ApiContext
from cantata.api.schemas import SpeechVerification, VerifiedWord
from cantata.api.transcription.body import SentFile, TranscriptionBody
from cantata.api.transcription.parts import build_request, transcribe_file
from cantata.contract.data.errors import InvalidRequest, ModelNotFound
from cantata.contract.data.transcripts import TranscribedWord
from cantata.contract.service import Samples
from cantata.contract.transcription_service import TranscriptionModel
from cantata.speech_input.recordings import RecordingProgress

MAX_ATTEMPTS = 3
"""Times that a text is spoken, if it is to be spoken again where words are missing."""
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_SMALL_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen", "twenty"),
)

_SPELLINGS = {"dr": "doctor", "mr": "mister", "mrs": "missus", "vs": "versus", "okay": "ok"}
"""A recogniser writes either."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word in the form in which words are compared."""

    bare: str
    start: int
    """Characters of the text before it, as the next."""
    end: int
    probability: float = 1.0


def choose_verifier(context: ApiContext) -> TranscriptionModel:
    """The model that hears what is verified.

    Raises:
        InvalidRequest: there is none.
    """
    try:
        return context.transcription_model(None)
    except ModelNotFound:
        raise InvalidRequest(
            "verify needs a model that transcribes, and this server has none", "verify"
        ) from None


async def verify_speech(
    context: ApiContext, text: str, samples: Sequence[Samples], sample_rate: int
) -> SpeechVerification:
    """What is heard of a text that was spoken.

    Args:
        context: the server's.
        text: as the client sent it.
        samples: [N, C] each, in -1..1: all of its sound.
        sample_rate: Hz.

    Raises:
        InvalidRequest: no model here transcribes.
        CantataError: the sound cannot be recognised.
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


def compare_words(text: str, heard: Sequence[TranscribedWord]) -> SpeechVerification:
    """Each word of a text beside what was heard.

    A word that was heard has the recogniser's probability as its confidence, one that was not has
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
    """Count what was heard of an utterance of a model."""
    context.metrics.transcriptions.count_verified(
        model, len(found.words), len(found.missing), len(found.extra)
    )


def _strip(word: str) -> str:
    plain = word.lower().replace("'", "").replace("\u2019", "")
    if plain.isascii() and plain.isdigit() and int(plain) < len(_SMALL_NUMBERS):
        return _SMALL_NUMBERS[int(plain)]
    return _SPELLINGS.get(plain, plain)
