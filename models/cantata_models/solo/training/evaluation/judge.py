"""Measures intelligibility: pocketsphinx transcribes the speech and jiwer counts the errors.

pocketsphinx's dictionary and aligner also made the training data, so the evaluation adds measures
that do not depend on words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jiwer
import numpy as np
import pocketsphinx
import soxr

from cantata_models.solo.training.evaluation.acoustics import Samples
from cantata_models.solo.training.text import bare

JUDGE_RATE = 16_000
JUDGE_PEAK = 0.9
PADDING_S = 0.2
"""Silence before and after the speech, as in the judge's training data."""
MAX_SEARCH = 3000
"""States per frame: a third less work than the default, with the same words."""


@dataclass(frozen=True, slots=True)
class Score:
    """Errors over a set of sentences, in percent."""

    sentences: int
    words: int
    wer: float
    cer: float


class Judge:
    """One pocketsphinx decoder with its own English language model.

    A transcript does not depend on earlier utterances. The cepstral mean is computed per utterance,
    the second search pass, which keeps state between utterances, is off, and the feature
    extraction, which also keeps state, restarts each time.
    """

    def __init__(self) -> None:
        self._decoder = pocketsphinx.Decoder(
            loglevel="FATAL", cmn="batch", fwdflat=False, maxhmmpf=MAX_SEARCH
        )

    def hear(self, samples: Samples, sample_rate: int) -> str:
        """Returns the words recognized in mono sound."""
        narrow = soxr.resample(samples, sample_rate, JUDGE_RATE)
        silence = np.zeros(int(PADDING_S * JUDGE_RATE), dtype=np.float32)
        narrow = np.concatenate([silence, narrow, silence])
        peak = max(float(np.abs(narrow).max()), 1e-6)
        pcm = (narrow * (JUDGE_PEAK / peak * 32767)).astype(np.int16)
        self._decoder.reinit_feat()
        self._decoder.start_utt()
        self._decoder.process_raw(pcm.tobytes(), full_utt=True)
        self._decoder.end_utt()
        heard = self._decoder.hyp()
        return "" if heard is None else str(heard.hypstr)


def score(texts: Sequence[str], heard: Sequence[str]) -> Score:
    """Compares the texts with the transcripts, without punctuation marks."""
    wanted = [bare(text) for text in texts]
    got = [bare(text) for text in heard]
    return Score(
        sentences=len(texts),
        words=sum(len(text.split()) for text in wanted),
        wer=100 * float(jiwer.wer(wanted, got)),
        cer=100 * float(jiwer.cer(wanted, got)),
    )
