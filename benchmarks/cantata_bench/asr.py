"""An offline speech recognizer as the judge of whether the sound says the text.

pocketsphinx is small and old, so its word error rate distinguishes words from noise but not
a good voice from a plain one. Needs the extra `bench`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import jiwer
import numpy as np
import soxr
from numpy.typing import NDArray
from pocketsphinx import Decoder

ASR_RATE_HZ = 16_000
PAD_S = 0.3
PEAK = 0.8


def transcribe(pcm: NDArray[np.int16], sample_rate_hz: int) -> str:
    """The words heard in mono `pcm`, lower case; empty if there are none.

    It takes seconds of CPU for each ten of sound, and depends on nothing that was heard before.
    """
    sound = soxr.resample(pcm.astype(np.float32), sample_rate_hz, ASR_RATE_HZ)
    peak = float(np.abs(sound).max(initial=0.0))
    if peak == 0.0:
        return ""
    pad = np.zeros(int(PAD_S * ASR_RATE_HZ), dtype=np.int16)
    loud = (sound * (PEAK * 32767 / peak)).astype(np.int16)
    decoder = Decoder(samprate=ASR_RATE_HZ, loglevel="FATAL")
    decoder.start_utt()
    decoder.process_raw(np.concatenate([pad, loud, pad]).tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return "" if hypothesis is None else normalize(hypothesis.hypstr)


def word_error_rate(reference: Sequence[str], hypothesis: Sequence[str]) -> float:
    """Pooled over all sentences: wrong, missing and added words per word said."""
    return float(
        jiwer.wer([normalize(text) for text in reference], [normalize(text) for text in hypothesis])
    )


def count_errors(text: str, pcm: bytes, sample_rate_hz: int) -> tuple[int, float]:
    """Words in `text`, and how many of them mono s16le `pcm` gets wrong, misses or adds."""
    words = len(normalize(text).split())
    hypothesis = transcribe(np.frombuffer(pcm, dtype="<i2"), sample_rate_hz)
    return words, round(words * word_error_rate([text], [hypothesis]))


def normalize(text: str) -> str:
    """Lower-case words with single spaces; punctuation goes, apostrophes inside words stay."""
    return " ".join(re.findall(r"[a-z0-9]+(?:'[a-z]+)*", text.lower()))
