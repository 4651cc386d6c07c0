"""The voice's stage: a tone for each word, a few words at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from cantata.contract.data.chunks import Pcm, WordTiming
from tiny_voice.inputs import Clause, VoiceInput
from tiny_voice.onnx_file import NAME

SAMPLE_RATE = 16_000
LETTER_S, GAP_S = 0.025, 0.02


class TinyVoice:
    """Implements `contract.model.feed_forward.Synthesizer`."""

    sample_rate, channels = SAMPLE_RATE, 1

    def __init__(self, checkpoint: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(checkpoint / NAME), options, providers=["CPUExecutionProvider"]
        )

    def synthesize(self, inputs: VoiceInput) -> Iterator[Pcm]:
        """A part for each clause, or for a few of its words."""
        begun = 0
        for clause in inputs.clauses:
            part = self._clause(clause, inputs, begun)
            begun += part.units
            yield part

    def _clause(self, clause: Clause, inputs: VoiceInput, begun: int) -> Pcm:
        phases, words = list[np.ndarray](), list[WordTiming]()
        place = begun
        for index, letters in zip(clause.words, clause.letters, strict=True):
            samples = round(letters * LETTER_S * SAMPLE_RATE / inputs.speed)
            hertz = inputs.pitch * (1 + letters / 20)
            phases.append(2 * np.pi * hertz / SAMPLE_RATE * np.arange(samples, dtype=np.float32))
            words.append(WordTiming(index, place / SAMPLE_RATE, (place + samples) / SAMPLE_RATE))
            gap = round(GAP_S * SAMPLE_RATE / inputs.speed)
            phases.append(np.zeros(gap, np.float32))
            place += samples + gap
        (made,) = self._session.run(None, {"phases": np.concatenate(phases)})
        return Pcm(made[:, None], tuple(words))


def load_voice(checkpoint: Path, device: torch.device) -> TinyVoice:
    """The voice of a folder."""
    return TinyVoice(checkpoint)
