"""How well sound is understood: pocketsphinx hears it, jiwer counts the errors.

pocketsphinx's dictionary and aligner also made the training data, so a second measure stands
beside it that knows no words: mel-cepstral distortion against the teacher's own reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jiwer
import numpy as np
import numpy.typing as npt
import pocketsphinx
import soxr
import torch

from cantata_models.solo.networks.codec_encoder import LogMel
from cantata_models.solo.training.text import bare

JUDGE_RATE = 16_000
JUDGE_PEAK = 0.9
PADDING_S = 0.2
"""Silence before and after, as the judge was trained on."""
CEPSTRA = 13

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Score:
    """Errors over a set of sentences, in percent."""

    sentences: int
    wer: float
    cer: float


class Judge:
    """One pocketsphinx decoder with its own English language model."""

    def __init__(self) -> None:
        self._decoder = pocketsphinx.Decoder(loglevel="FATAL")

    def hear(self, samples: Samples, sample_rate: int) -> str:
        """Returns the words heard in mono sound."""
        narrow = soxr.resample(samples, sample_rate, JUDGE_RATE)
        silence = np.zeros(int(PADDING_S * JUDGE_RATE), dtype=np.float32)
        narrow = np.concatenate([silence, narrow, silence])
        peak = max(float(np.abs(narrow).max()), 1e-6)
        pcm = (narrow * (JUDGE_PEAK / peak * 32767)).astype(np.int16)
        self._decoder.start_utt()
        self._decoder.process_raw(pcm.tobytes(), full_utt=True)
        self._decoder.end_utt()
        heard = self._decoder.hyp()
        return "" if heard is None else str(heard.hypstr)


def score(texts: list[str], heard: list[str]) -> Score:
    """Compares what was to be said with what was heard, marks left out."""
    wanted = [bare(text) for text in texts]
    got = [bare(text) for text in heard]
    return Score(
        len(texts), 100 * float(jiwer.wer(wanted, got)), 100 * float(jiwer.cer(wanted, got))
    )


def cepstra(samples: Samples, mel: LogMel) -> npt.NDArray[np.float64]:
    """[N] samples at 24 kHz -> [H, 13] mel cepstra without the level, one row per 10 ms."""
    rows = mel(torch.from_numpy(samples)[None])[0].double().numpy()
    places = (np.arange(rows.shape[1]) + 0.5) * math.pi / rows.shape[1]
    basis = np.cos(places[:, None] * np.arange(1, CEPSTRA + 1))
    product: npt.NDArray[np.float64] = rows @ basis * (2 / rows.shape[1])
    return product


def mel_cepstral_distortion(ours: Samples, theirs: Samples, mel: LogMel) -> float:
    """Returns the distance in dB along the best time alignment (dynamic time warping)."""
    a, b = cepstra(ours, mel), cepstra(theirs, mel)
    distance = np.sqrt(2 * np.square(a[:, None] - b[None]).sum(axis=2)) * 10 / math.log(10)
    cost = np.full((len(a) + 1, len(b) + 1), np.inf)
    steps = np.zeros_like(cost)
    cost[0, 0] = 0.0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            previous = min(
                (cost[i - 1, j - 1], steps[i - 1, j - 1]),
                (cost[i - 1, j], steps[i - 1, j]),
                (cost[i, j - 1], steps[i, j - 1]),
            )
            cost[i, j] = previous[0] + distance[i - 1, j - 1]
            steps[i, j] = previous[1] + 1
    return float(cost[-1, -1] / steps[-1, -1])
