"""What is said, when and by whom: judged by pocketsphinx and by the teachers' own readings.

The teachers' figures are committed beside solo's weights; they were measured on recordings that
no part of Cantata made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pocketsphinx
import soxr

from cantata_models.solo.training.evaluation.acoustics import analyze
from cantata_models.solo.training.evaluation.judge import Judge
from cantata_models.solo.training.evaluation.short import read_baseline
from cantata_models.solo.training.evaluation.timbre import embedding, nearest

from .waveform import Samples, pauses

ALIGNER_RATE = 16_000
PADDING_S = 0.2
FRAME_S = 0.01
WINDOW_CENTRE_S = 0.0078
"""A boundary lies between the centres of two of the aligner's windows of 25.6 ms."""
DURATION_RATIO = (0.9, 1.14)
"""Over the teacher's; found: 0.95 to 1.09."""
USUAL_DURATION_RATIO = (0.985, 1.07)
"""The median over a voice's sentences; found: 1.02 to 1.04."""
LOUDNESS_DB = {"clara": -15.0, "ben": -19.7, "ruby": -15.3, "ewan": -20.3}
"""Root mean square over full scale, mean of the short form's sentences."""
MAX_FROM_LOUDNESS_DB = 2.5
EMBEDDING_RATE = 24_000
MIN_PAUSE_S = 0.15
"""A stop's closure is silent for up to 0.1 s."""


@dataclass(frozen=True, slots=True)
class SaidWord:
    """Where the aligner finds a word."""

    word: str
    start_s: float
    end_s: float


class Unalignable(AssertionError):
    """The sound is not this text."""


@cache
def judge() -> Judge:
    """The one that measured the model card's word error rates."""
    return Judge()


@cache
def _aligner() -> pocketsphinx.Decoder:
    return pocketsphinx.Decoder(lm=None, loglevel="FATAL")


def spoken_words(text: str) -> list[str]:
    """The words of a text in spoken form, without digits or markup."""
    return re.findall(r"[a-z']+", text.lower())


def align(text: str, sound: Samples, rate: int) -> list[SaidWord]:
    """When each word of `text` is said in `sound`.

    Raises:
        Unalignable: no path through the sound says these words.
    """
    narrow = soxr.resample(sound, rate, ALIGNER_RATE)
    silence = np.zeros(round(PADDING_S * ALIGNER_RATE), dtype=np.float32)
    loud = narrow * (0.88 / max(float(np.abs(narrow).max()), 1e-6))
    pcm = (np.concatenate([silence, loud, silence]) * 32767).astype(np.int16).tobytes()
    decoder = _aligner()
    try:
        decoder.set_align_text(" ".join(spoken_words(text)))
        _decode(decoder, pcm)
        decoder.set_alignment()
        _decode(decoder, pcm)
        segments = list(decoder.get_alignment())
    except (RuntimeError, TypeError) as error:
        raise Unalignable(f"no word of {text!r} is where it should be") from error
    offset = WINDOW_CENTRE_S - PADDING_S
    return [
        SaidWord(
            one.name, one.start * FRAME_S + offset, (one.start + one.duration) * FRAME_S + offset
        )
        for one in segments
        if not one.name.startswith(("<", "["))
    ]


def _decode(decoder: pocketsphinx.Decoder, pcm: bytes) -> None:
    decoder.reinit_feat()
    decoder.start_utt()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()


def transcribe(sound: Samples, rate: int) -> str:
    """The words that the card's judge hears."""
    return judge().hear(sound, rate)


def card_wer(voice: str) -> float:
    """The voice's word error rate over the short form, in percent, as committed."""
    return read_baseline().voices[voice].wer


def short_form() -> Sequence[str]:
    """The sentences whose readings by the teachers are known."""
    return list(next(iter(read_baseline().voices.values())).teacher_seconds)


def duration_ratio(text: str, voice: str, seconds: float) -> float:
    """Over the teacher's reading of a sentence of the short form."""
    return seconds / read_baseline().voices[voice].teacher_seconds[text]


def loudness_db(sound: Samples) -> float:
    """Root mean square over full scale."""
    return 10 * float(np.log10(np.square(sound.astype(np.float64)).mean() + 1e-12))


def faults(text: str, voice: str, sound: Samples, rate: int) -> list[str]:
    """What is wrong with a sentence of the short form: its duration, its loudness, its voice."""
    found = []
    least, most = DURATION_RATIO
    ratio = duration_ratio(text, voice, len(sound) / rate)
    if not least < ratio < most:
        found.append(f"it takes {ratio:.2f} of the teacher's time")
    loudness = loudness_db(sound)
    if abs(loudness - LOUDNESS_DB[voice]) > MAX_FROM_LOUDNESS_DB:
        found.append(f"its level is {loudness:.1f} dB, usual is {LOUDNESS_DB[voice]}")
    if (nearest_voice := sounds_like(sound, rate)) != voice:
        found.append(f"it sounds like {nearest_voice}")
    # Of the pauses within a sentence, each has its punctuation mark.
    inner = [one for one in pauses(sound, rate, MIN_PAUSE_S) if one[1] < len(sound) / rate - 0.02]
    inner = [one for one in inner if one[0] > MIN_PAUSE_S]
    if len(inner) > len(re.findall(r"[,;:]", text)):
        found.append(f"it pauses at {', '.join(f'{start:.2f} s' for start, _ in inner)}")
    return found


def sounds_like(sound: Samples, rate: int) -> str:
    """The voice whose teacher this is most like."""
    baseline = read_baseline()
    centres = {name: np.array(one.centre) for name, one in baseline.voices.items()}
    wide = sound if rate == EMBEDDING_RATE else soxr.resample(sound, rate, EMBEDDING_RATE)
    return nearest(embedding(analyze(wide)), centres, np.array(baseline.spread))
