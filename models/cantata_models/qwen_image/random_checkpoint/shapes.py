"""Sizes of random checkpoints; names and shapes of the tensors of text encoder and autoencoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import Qwen2_5_VLConfig

from cantata_layers.qwen_image.config import Family
from cantata_layers.qwen_image.text.encoder import FLAT_NAMES, empty_network
from cantata_layers.random_rules import Rules, gain, specify, values
from cantata_layers.random_tensors import TensorSpec, bias, weight
from cantata_layers.weights import WeightMap

RULES: Rules = {
    r"embed_tokens\.weight$": values(1.0),
    r"^model\..*(?:q_proj|k_proj|down_proj)\.weight$": gain(2.0),
    r"attn\.qkv\.weight$|merger\.mlp\.0\.weight$": gain(2.0),
    r"patch_embed\.proj\.weight$": gain(3.0),
}


def text_tensors(config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield every tensor of a text_encoder/ folder with this config.json."""
    kind: Any = Qwen2_5_VLConfig
    with torch.device("meta"):
        network = empty_network(kind(**config), True, torch.float32)
    head = {"lm_head.weight": (config["vocab_size"], config["hidden_size"])}
    yield from specify(WeightMap(FLAT_NAMES).shapes(network) | head, RULES)


LATENTS, COLOURS = 16, 3
FACTORS = (1, 2, 4, 4)
IN_TIME = (False, True, True)
"""Which halvings of the encoder, from the finest, also halve the frames."""


def vae_tensors(shape: QwenImageShape) -> Iterator[TensorSpec]:
    """Yield every tensor of a vae/ folder."""
    widths = [shape.vae_width * factor for factor in (1, *FACTORS)]
    yield from _cube("encoder.conv_in", COLOURS, widths[0], 3)
    yield from _encoder_blocks(shape, widths)
    yield from _middle("encoder", widths[-1])
    yield from _head("encoder", widths[-1], 2 * LATENTS, gain=3.0)
    yield from _cube("quant_conv", 2 * LATENTS, 2 * LATENTS, 1)
    yield from _cube("post_quant_conv", LATENTS, LATENTS, 1)
    yield from _cube("decoder.conv_in", LATENTS, widths[-1], 3)
    yield from _middle("decoder", widths[-1])
    yield from _decoder_blocks(shape, [widths[-1], *widths[:0:-1]])
    yield from _head("decoder", widths[1], COLOURS, gain=0.5)


def _encoder_blocks(shape: QwenImageShape, widths: list[int]) -> Iterator[TensorSpec]:
    place = 0
    for level, outputs in enumerate(widths[1:]):
        for block in range(shape.vae_blocks):
            inputs = outputs if block else widths[level]
            yield from _residual(f"encoder.down_blocks.{place}", inputs, outputs)
            place += 1
        if level < len(IN_TIME):
            name = f"encoder.down_blocks.{place}"
            yield from _plane(f"{name}.resample.1", outputs, outputs, 3)
            if IN_TIME[level]:
                yield from _cube(f"{name}.time_conv", outputs, outputs, (3, 1, 1))
            place += 1


def _decoder_blocks(shape: QwenImageShape, widths: list[int]) -> Iterator[TensorSpec]:
    for level, outputs in enumerate(widths[1:]):
        name = f"decoder.up_blocks.{level}"
        inputs = widths[level] // 2 if level else widths[level]
        for block in range(shape.vae_blocks + 1):
            yield from _residual(f"{name}.resnets.{block}", outputs if block else inputs, outputs)
        if level < len(IN_TIME):
            yield from _plane(f"{name}.upsamplers.0.resample.1", outputs, outputs // 2, 3)
            if IN_TIME[::-1][level]:
                yield from _cube(f"{name}.upsamplers.0.time_conv", outputs, 2 * outputs, (3, 1, 1))


def _cube(
    name: str, inputs: int, outputs: int, kernel: int | tuple[int, int, int], gain: float = 1.0
) -> Iterator[TensorSpec]:
    """A convolution in space and time. One frame meets its last tap alone."""
    taps = (kernel,) * 3 if isinstance(kernel, int) else kernel
    fan_in = inputs * taps[1] * taps[2]
    yield weight(name, outputs, inputs, *taps, gain=gain, fan_in=fan_in)
    yield bias(name, outputs)


def _plane(name: str, inputs: int, outputs: int, kernel: int) -> Iterator[TensorSpec]:
    yield weight(name, outputs, inputs, kernel, kernel)
    yield bias(name, outputs)


def _gain(name: str, channels: int, dimensions: int) -> TensorSpec:
    return TensorSpec(f"{name}.gamma", (channels, *(1,) * dimensions), 0.2, 1.0)


def _residual(name: str, inputs: int, outputs: int) -> Iterator[TensorSpec]:
    yield _gain(f"{name}.norm1", inputs, 3)
    yield from _cube(f"{name}.conv1", inputs, outputs, 3)
    yield _gain(f"{name}.norm2", outputs, 3)
    yield from _cube(f"{name}.conv2", outputs, outputs, 3)
    if inputs != outputs:
        yield from _cube(f"{name}.conv_shortcut", inputs, outputs, 1)


def _middle(side: str, channels: int) -> Iterator[TensorSpec]:
    name = f"{side}.mid_block"
    yield from _residual(f"{name}.resnets.0", channels, channels)
    yield _gain(f"{name}.attentions.0.norm", channels, 2)
    yield from _plane(f"{name}.attentions.0.to_qkv", channels, 3 * channels, 1)
    yield from _plane(f"{name}.attentions.0.proj", channels, channels, 1)
    yield from _residual(f"{name}.resnets.1", channels, channels)


def _head(side: str, channels: int, outputs: int, gain: float) -> Iterator[TensorSpec]:
    yield _gain(f"{side}.norm_out", channels, 3)
    yield from _cube(f"{side}.conv_out", channels, outputs, 3, gain)


@dataclass(frozen=True, slots=True)
class QwenImageShape:
    """The values that differ between sizes."""

    layers: int
    heads: int
    rope_axes: tuple[int, int, int]
    text_width: int
    text_layers: int
    text_heads: int
    text_kv_heads: int
    text_inner: int
    mrope_section: tuple[int, int, int]
    vision_layers: int
    vision_width: int
    vision_heads: int
    vae_width: int
    vae_blocks: int

    @property
    def head_dim(self) -> int:
        """Columns of a denoiser's head."""
        return sum(self.rope_axes)

    @property
    def width(self) -> int:
        """Columns of the denoiser."""
        return self.heads * self.head_dim


TINY = QwenImageShape(
    layers=3,
    heads=2,
    rope_axes=(4, 6, 6),
    text_width=48,
    text_layers=2,
    text_heads=3,
    text_kv_heads=1,
    text_inner=64,
    mrope_section=(2, 3, 3),
    vision_layers=2,
    vision_width=32,
    vision_heads=2,
    vae_width=4,
    vae_blocks=1,
)
"""For parity: a second to make and to run."""
SMALL = QwenImageShape(
    layers=8,
    heads=6,
    rope_axes=(16, 24, 24),
    text_width=256,
    text_layers=4,
    text_heads=4,
    text_kv_heads=2,
    text_inner=512,
    mrope_section=(8, 12, 12),
    vision_layers=4,
    vision_width=128,
    vision_heads=4,
    vae_width=16,
    vae_blocks=2,
)
"""For loads on a CPU."""
PUBLISHED = QwenImageShape(
    layers=60,
    heads=24,
    rope_axes=(16, 56, 56),
    text_width=3584,
    text_layers=28,
    text_heads=28,
    text_kv_heads=4,
    text_inner=18944,
    mrope_section=(16, 24, 24),
    vision_layers=32,
    vision_width=1280,
    vision_heads=16,
    vae_width=96,
    vae_blocks=2,
)
SIZES = {"tiny": TINY, "small": SMALL, "published": PUBLISHED}


@dataclass(frozen=True, slots=True)
class Variant:
    """Which of the published models."""

    family: Family
    still_references: bool = False
    """As Edit-2511."""


VARIANTS = {
    "image": Variant(Family.IMAGE),
    "edit": Variant(Family.EDIT),
    "edit-2509": Variant(Family.EDIT_PLUS),
    "edit-2511": Variant(Family.EDIT_PLUS, still_references=True),
}
