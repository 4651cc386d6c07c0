"""Decodes frames to 44.1 kHz sound with explicit state per slot.

The codebooks' latents pass a transformer over a window of frames, two stages that double the rate,
and four that raise it by 512. Nothing looks ahead, so each frame makes its 2,048 samples at once,
and streaming equals decoding the whole.

Letters: B rows, T frames, Q codebooks, N the latent's width.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_layers.causal_convolutions import CausalConv, CausalUpsample, ConvNextBlock
from cantata_layers.causal_decoder import CausalDecoder
from cantata_layers.conv_cache import ConvCache
from cantata_layers.descript_codec import Snake
from cantata_layers.sliding_transformer import SlidingTransformer
from cantata_models.fish_speech.codec.blocks import WaveStage
from cantata_models.fish_speech.codec.quantiser import QUANTISERS, Codebooks
from cantata_models.fish_speech.codec.tensors import CodecTensors
from cantata_models.fish_speech.config import SAMPLE_RATE
from cantata_models.fish_speech.networks.rotary import RoundedRotation

TRANSFORMER, UPSAMPLE, WAVE = "quantizer.post_module", "quantizer.upsample", "decoder.model"
PARTS = (*QUANTISERS, f"{TRANSFORMER}.", f"{UPSAMPLE}.", f"{WAVE}.")
FRAME_WINDOW = 128
"""Frames that a frame attends to, itself included."""


class SpeechDecoder(CausalDecoder):
    """The codec as a decoder of codes.

    Args:
        checkpoint: the folder of codec.pth.
        device: where it runs.
        codes: that a talker may choose.
        semantic: how many of these are semantic tokens. The others are decoded as code 0.

    Raises:
        ConfigError: (on construction) the folder holds no such codec.
    """

    recordable = True
    sample_rate, channels = SAMPLE_RATE, 1

    def __init__(self, checkpoint: Path, device: torch.device, codes: int, semantic: int) -> None:
        tensors = CodecTensors(checkpoint, PARTS)
        weights = tensors.weights(device)
        self._codebooks = Codebooks(tensors, weights)
        self.num_codebooks = len(self._codebooks.sizes)
        super().__init__(torch.zeros(1, 1, self.num_codebooks, dtype=torch.int64, device=device))
        self.codebook_size, self._semantic = codes, semantic
        latent = self._codebooks.latent_dim
        sizes = tensors.transformer(TRANSFORMER, FRAME_WINDOW)
        self._transformer = SlidingTransformer(
            weights, TRANSFORMER, sizes, device, rotation=RoundedRotation
        )
        self._upsamplers = []
        self.samples_per_frame = 1
        for index in range(tensors.count(UPSAMPLE, "0.conv.weight")):
            name = f"{UPSAMPLE}.{index}"
            rate = tensors.shape(f"{name}.0.conv.weight", 3)[2]
            upsample = CausalUpsample(weights, f"{name}.0.conv", latent, latent, rate, rate)
            self._upsamplers.append((upsample, ConvNextBlock(weights, f"{name}.1", latent)))
            self.samples_per_frame *= rate
        width = tensors.shape(f"{WAVE}.0.conv.weight", 3)[0]
        self._widen = CausalConv(weights, f"{WAVE}.0.conv", latent, width, 7)
        self._stages = []
        last = 1
        while f"{WAVE}.{last}.block.1.conv.weight" in tensors:
            inputs, outputs, kernel = tensors.shape(f"{WAVE}.{last}.block.1.conv.weight", 3)
            self._stages.append(WaveStage(weights, f"{WAVE}.{last}", inputs, outputs, kernel // 2))
            self.samples_per_frame *= kernel // 2
            width, last = outputs, last + 1
        self._snake = Snake(weights, f"{WAVE}.{last}", width)
        self._wave = CausalConv(weights, f"{WAVE}.{last + 1}.conv", width, 1, 7)

    def _run(self, codes: torch.Tensor, past: ConvCache) -> torch.Tensor:
        spoken = codes.clone()
        spoken[..., 0].masked_fill_(codes[..., 0] >= self._semantic, 0)
        x = self._transformer(self._codebooks.decode(spoken), past)
        for upsample, refine in self._upsamplers:
            x = refine(upsample(x, past), past)
        x = self._widen(x, past)
        for stage in self._stages:
            x = stage(x, past)
        return self._wave(self._snake(x), past).tanh()
