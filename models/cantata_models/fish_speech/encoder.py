"""The encoder stage: from recordings to their frames of codes.

Four stages lower the rate by 512; the last one's transformer looks back over a window. Two more
stages halve the rate, and a transformer over frames precedes the codebooks.

Letters: N samples, T frames, Q codebooks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from cantata.contract.data.chunks import Codes, Payload
from cantata.contract.data.errors import CantataError
from cantata_layers.causal_convolutions import (
    CausalConv,
    CausalConvNextBlock,
    CausalDownsample,
    ConvCache,
    Snake,
)
from cantata_layers.sliding_transformer import SlidingTransformer
from cantata_models.fish_speech.codec import (
    FRAME_WINDOW,
    QUANTIZERS,
    AnalysisStage,
    Codebooks,
    CodecTensors,
)
from cantata_models.fish_speech.config import check_codec, load_config
from cantata_models.fish_speech.networks import RoundedRotation
from cantata_models.fish_speech.prompt import FishEncoderInput

WAVE, DOWNSAMPLE, TRANSFORMER = "encoder.block", "quantizer.downsample", "quantizer.pre_module"
PARTS = (*QUANTIZERS, f"{WAVE}.", f"{DOWNSAMPLE}.", f"{TRANSFORMER}.")
WAVE_WINDOW = 512
"""Positions that a position of the last stage attends to, itself included."""
BLOCK = 4
"""Frames that are encoded at a time: bounds the memory, whatever the recording's length."""


class FishFrameEncoder:
    """Encodes recordings with a checkpoint's own codec.

    Args:
        checkpoint: the folder of codec.pth.
        device: where it runs.

    Raises:
        ConfigError: (on construction) the folder holds no such codec.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        tensors = CodecTensors(checkpoint, PARTS)
        weights = tensors.weights(device)
        self._device = device
        self._codebooks = Codebooks(tensors, weights)
        self.num_codebooks = len(self._codebooks.sizes)
        width = tensors.shape(f"{WAVE}.0.conv.weight", 3)[0]
        self._into = CausalConv(weights, f"{WAVE}.0.conv", 1, width, 7)
        self._stages = []
        self.samples_per_frame = 1
        last = 1
        while f"{WAVE}.{last}.block.4.conv.weight" in tensors:
            outputs, inputs, kernel = tensors.shape(f"{WAVE}.{last}.block.4.conv.weight", 3)
            stage = AnalysisStage(weights, f"{WAVE}.{last}", inputs, outputs, kernel // 2)
            self._stages.append(stage)
            self.samples_per_frame *= kernel // 2
            width, last = outputs, last + 1
        within = f"{WAVE}.{last - 1}.block.5"
        self._wave_transformer = SlidingTransformer(
            weights, within, tensors.transformer(within, WAVE_WINDOW), device, RoundedRotation
        )
        self._snake = Snake(weights, f"{WAVE}.{last}", width)
        latent, _, kernel = tensors.shape(f"{WAVE}.{last + 1}.conv.weight", 3)
        self._out = CausalConv(weights, f"{WAVE}.{last + 1}.conv", width, latent, kernel)
        self._wave_rate = self.samples_per_frame
        self._downsamplers = []
        for index in range(tensors.count(DOWNSAMPLE, "0.conv.weight")):
            name = f"{DOWNSAMPLE}.{index}"
            rate = tensors.shape(f"{name}.0.conv.weight", 3)[2]
            lower = CausalDownsample(weights, f"{name}.0.conv", latent, latent, rate, rate)
            self._downsamplers.append((lower, CausalConvNextBlock(weights, f"{name}.1", latent)))
            self.samples_per_frame *= rate
        sizes = tensors.transformer(TRANSFORMER, FRAME_WINDOW)
        self._transformer = SlidingTransformer(weights, TRANSFORMER, sizes, device, RoundedRotation)

    @torch.inference_mode()
    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """Encode a whole recording.

        Args:
            samples: [N] float32 mono at 44.1 kHz, N >= 1; silence fills the last frame.

        Returns:
            [T, Q] int64.
        """
        padded = functional.pad(samples, (0, -len(samples) % self.samples_per_frame))
        blocks = torch.split(padded.to(self._device), BLOCK * self.samples_per_frame)
        histories: list[torch.Tensor] | None = None
        latents, frames = [], 0
        for block in blocks:
            before = frames * self.samples_per_frame // self._wave_rate
            wave = ConvCache(self._count(before), histories)
            latents.append(self._encode_block(block.view(1, -1, 1), wave, frames))
            histories, frames = wave.extended, frames + latents[-1].shape[1]
        return self._codebooks.encode(torch.cat(latents, dim=1)[0])

    def _encode_block(self, x: torch.Tensor, past: ConvCache, frames: int) -> torch.Tensor:
        """[1, N, 1] -> [1, T, latent] ; `past` has the wave's positions, `frames` came before."""
        x = self._into(x, past)
        for stage in self._stages:
            x = stage(x, past)
        x = self._out(self._snake(self._wave_transformer(x, past)), past)
        for lower, refine in self._downsamplers:
            x = refine(lower(x, past), past)
        past.positions = self._count(frames)
        return self._transformer(x, past)

    def _count(self, positions: int) -> torch.Tensor:
        return torch.tensor([positions], device=self._device)


class RecordingFrames:
    """Implements `contract.model.feed_forward.FeedForward` with a checkpoint's own encoder."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        encoder = self._encoder = FishFrameEncoder(checkpoint, device)
        config = load_config(checkpoint)
        check_codec(config, checkpoint, encoder.num_codebooks, encoder.samples_per_frame)

    def key(self, inputs: FishEncoderInput) -> bytes:
        """Hash of the samples."""
        digest = hashlib.sha256()
        for samples in inputs.recordings:
            digest.update(len(samples).to_bytes(8, "little"))
            digest.update(samples.tobytes())
        return digest.digest()

    def run(
        self, batch: Sequence[FishEncoderInput]
    ) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: padded to one length, they would influence each
        other."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: FishEncoderInput) -> Mapping[str, Payload]:
        encode = self._encoder.encode
        codes = torch.cat([encode(torch.from_numpy(samples)) for samples in inputs.recordings])
        return {"frames": Codes(codes.cpu().numpy().astype(np.int32))}
