"""Which digits are said: a recognizer that knows no other words hears them reliably."""

from __future__ import annotations

from functools import cache

import numpy as np
import pocketsphinx
import soxr

from .waveform import Samples

RATE = 16_000
PADDING_S = 0.2
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
GRAMMAR = f"#JSGF V1.0; grammar digits; public <said> = ({' | '.join(DIGITS)})+;"


@cache
def _decoder() -> pocketsphinx.Decoder:
    decoder = pocketsphinx.Decoder(lm=None, loglevel="FATAL", cmn="batch")
    decoder.add_jsgf_string("digits", GRAMMAR)
    decoder.activate_search("digits")
    return decoder


def transcribe(sound: Samples, rate: int) -> list[str]:
    """The digits in mono sound, as words."""
    narrow = soxr.resample(sound, rate, RATE)
    silence = np.zeros(round(PADDING_S * RATE), dtype=np.float32)
    loud = narrow * (0.88 / max(float(np.abs(narrow).max(initial=0.0)), 1e-6))
    pcm = (np.concatenate([silence, loud, silence]) * 32767).astype(np.int16)
    decoder = _decoder()
    decoder.reinit_feat()
    decoder.start_utt()
    decoder.process_raw(pcm.tobytes(), full_utt=True)
    decoder.end_utt()
    heard = decoder.hyp()
    return [] if heard is None else str(heard.hypstr).split()
