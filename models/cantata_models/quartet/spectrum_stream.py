"""A sentence's spectra, predicted some frames at a time, each frame once.

A layer sees three frames on each side, so each is three frames behind the one before it. It keeps
the last inputs of the call before; zeros stand for what is before the sentence and after it, as
where the whole sentence is predicted at once.

Letters: C channels, F frames of the sentence, N new frames, M frames that become final.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from cantata_layers.harmonic_vocoder import Spectra
from cantata_models.quartet.network import CONTEXT, KERNEL, SpeakerBlock, SpectrumPredictor

REACH = KERNEL // 2
"""Frames that a layer sees on each side."""


@dataclass(frozen=True, slots=True)
class SpectrumInput:
    """What a sentence's spectra are predicted from."""

    encoded: torch.Tensor
    """[1, F, C]: each frame's phone."""
    pitch: torch.Tensor
    """[1, F] Hz."""
    energy: torch.Tensor
    """[1, F]."""
    speaker: torch.Tensor
    """[1, S], of `SpectrumPredictor.speakers`."""


class SpectrumStream:
    """Implements `harmonic_vocoder.SpectraPredictor` for one pass through a sentence. `pitch`: [at
    most F] Hz, of the frames that are made."""

    def __init__(
        self, predictor: SpectrumPredictor, inputs: SpectrumInput, pitch: NDArray[np.float32]
    ) -> None:
        self.pitch = pitch
        self._predictor = predictor
        self._inputs = inputs
        self._taken = self._made = 0
        """Frames that the first layer has seen, and frames whose spectra were predicted."""
        self._final = False
        """Whether the first layer has seen the last frame."""
        self._histories: list[torch.Tensor | None] = [None] * (1 + len(predictor.blocks))
        """By layer, the last 2 * REACH of its inputs."""
        self._ready = torch.zeros(1, predictor.frames_in.out_channels, 0)
        """After the last layer; their spectra are not predicted yet."""

    @torch.inference_mode()
    def predict(self, begin: int, end: int) -> Spectra:
        """Frames [begin, end), where `begin` is the `end` of the call before."""
        assert begin == self._made, f"frames {self._made} and on are next, not {begin}"
        self._advance(min(end + CONTEXT, self._inputs.encoded.shape[1]))
        count = end - begin
        heard, self._ready = self._ready[..., :count], self._ready[..., count:]
        self._made = end
        made = self._predictor.predict_parts(heard, self._inputs.speaker)
        harmonic, rotation, noise, free, phase = (part[0].numpy().T for part in made)
        return Spectra(harmonic, rotation, noise, free, phase, self.pitch[begin:end])

    def _advance(self, end: int) -> None:
        """Take the frames up to `end` through all layers."""
        if end == self._taken:
            return
        inputs, new = self._inputs, slice(self._taken, end)
        self._final = end == inputs.encoded.shape[1]
        self._taken = end
        predictor = self._predictor
        x = predictor.join_inputs(
            inputs.encoded[:, new], inputs.pitch[:, new], inputs.energy[:, new]
        )
        x = _convolve(predictor.frames_in, self._surround(0, x))
        for number, block in enumerate(predictor.blocks, 1):
            assert isinstance(block, SpeakerBlock)
            around = self._surround(number, x)
            seen = _convolve(block.depthwise, around)
            x = block.transform(around[..., REACH:-REACH], seen, inputs.speaker)
        self._ready = torch.cat([self._ready, x], dim=-1)

    def _surround(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        """[1, C, N] a layer's new inputs -> [1, C, M + 2 * REACH]: what it needs for M frames."""
        zeros = x.new_zeros(1, x.shape[1], REACH)
        before = self._histories[layer]
        parts = [zeros if before is None else before, x]
        around = torch.cat([*parts, zeros] if self._final else parts, dim=-1)
        self._histories[layer] = around[..., -2 * REACH :]
        return around


def _convolve(layer: nn.Conv1d, x: torch.Tensor) -> torch.Tensor:
    """The layer without its padding: [1, C, M + 2 * REACH] -> [1, C, M]."""
    return functional.conv1d(x, layer.weight, layer.bias, groups=layer.groups)
