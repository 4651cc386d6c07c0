"""Word errors by pocketsphinx: it tells words from noise, not a fine voice from a plain one."""

from __future__ import annotations

import re
from importlib.util import find_spec

import numpy as np
import soxr

from cantata.contract.errors import ConfigError

_RATE_HZ = 16_000
_PAD_S = 0.3
_PEAK = 0.8
_NEEDED = ("pocketsphinx", "jiwer")


def check_installed() -> None:
    """Before anything is measured.

    Raises:
        ConfigError: a package is missing; says how to get it.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"--asr needs {', '.join(missing)}: pip install 'cantata[bench]'")


class Recogniser:
    """Hears sound and counts what was not understood. Recognition takes seconds of CPU for each
    ten of sound, in the client's process: measure speed without it."""

    def count_errors(self, text: str, pcm: bytes, sample_rate: int) -> tuple[int, float]:
        """Words in `text`, and how many were wrong, missing or added.

        Args:
            pcm: signed 16 bit, mono.
            sample_rate: Hz.
        """
        import jiwer

        said = _words(text)
        measures = jiwer.process_words(said, self._hear(pcm, sample_rate))
        errors = measures.substitutions + measures.deletions + measures.insertions
        return len(said.split()), float(errors)

    def _hear(self, pcm: bytes, sample_rate: int) -> str:
        from pocketsphinx import Decoder

        samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32)
        sound = soxr.resample(samples, sample_rate, _RATE_HZ)
        peak = float(np.abs(sound).max(initial=0.0))
        if peak == 0.0:
            return ""
        pad = np.zeros(int(_PAD_S * _RATE_HZ), dtype=np.int16)
        loud = (sound * (_PEAK * 32767 / peak)).astype(np.int16)
        # A new one each time: what it hears then depends on nothing that it heard before.
        decoder = Decoder(samprate=_RATE_HZ, loglevel="FATAL")
        decoder.start_utt()
        decoder.process_raw(np.concatenate([pad, loud, pad]).tobytes(), full_utt=True)
        decoder.end_utt()
        heard = decoder.hyp()
        return "" if heard is None else _words(heard.hypstr)


def _words(text: str) -> str:
    """Lower case, single spaces; punctuation goes, apostrophes inside words stay."""
    return " ".join(re.findall(r"[a-z0-9]+(?:'[a-z]+)*", text.lower()))
