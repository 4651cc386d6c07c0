"""Names and shapes of codec.pth."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cantata_layers.random_tensors import TensorSpec, bias, conv, linear, norm, weight
from cantata_models.fish_speech.codec.tensors import HEAD_DIM
from cantata_models.fish_speech.config import CODEBOOKS
from cantata_models.fish_speech.random_checkpoint.shapes import CodecShape

CODE_WIDTH = 8
DECODER_RATES, ENCODER_RATES, FRAME_RATES = (8, 8, 4, 2), (2, 4, 8, 8), (2, 2)
UNITS = 3
INPUT_GAIN = 8.0
"""Of the encoder's first convolution: a quiet recording must matter beside biases."""
OUTPUT_GAIN = 0.025
"""Of the decoder's last one: keeps the wave where the last function is nearly a line."""


def codec_tensors(shape: CodecShape) -> Iterator[TensorSpec]:
    """Yield every tensor of the codec."""
    yield from _quantisers(shape)
    for name in ("pre_module", "post_module"):
        yield from _transformer(f"quantizer.{name}", shape.latent, shape.ffn, shape.layers)
    for index, rate in enumerate(FRAME_RATES):
        for name in ("upsample", "downsample"):
            fan = shape.latent * (rate if name == "downsample" else 1)
            stem = f"quantizer.{name}.{index}"
            yield weight(f"{stem}.0.conv", shape.latent, shape.latent, rate, fan_in=fan)
            yield bias(f"{stem}.0.conv", shape.latent)
            yield from _conv_next(f"{stem}.1", shape.latent)
    yield from _decoder(shape)
    yield from _encoder(shape)


def _quantisers(shape: CodecShape) -> Iterator[TensorSpec]:
    for book in range(CODEBOOKS):
        stem = (
            "semantic_quantizer.quantizers.0" if book == 0 else f"quantizer.quantizers.{book - 1}"
        )
        name, size = f"quantizer.{stem}", shape.residual if book else shape.semantic
        # Each codebook takes a smaller part than the one before it.
        gain = 0.8**book
        for projection, inputs, outputs in (
            ("in_proj", shape.latent, CODE_WIDTH),
            ("out_proj", CODE_WIDTH, shape.latent),
        ):
            stem = f"{name}.{projection}"
            yield TensorSpec(f"{stem}.weight_g", (outputs, 1, 1), 0.1 * gain, gain)
            yield TensorSpec(f"{stem}.weight_v", (outputs, inputs, 1), 1.0)
            yield TensorSpec(f"{stem}.bias", (outputs,), 0.05)
        yield TensorSpec(f"{name}.codebook.weight", (size, CODE_WIDTH), 1.0)


def _transformer(name: str, size: int, ffn: int, layers: int) -> Iterator[TensorSpec]:
    for index in range(layers):
        layer = f"{name}.layers.{index}"
        yield weight(f"{layer}.attention.wqkv", 3 * size, size, gain=2.0)
        yield weight(f"{layer}.attention.wo", size, size, gain=3.0)
        yield weight(f"{layer}.feed_forward.w1", ffn, size)
        yield weight(f"{layer}.feed_forward.w3", ffn, size)
        yield weight(f"{layer}.feed_forward.w2", size, ffn, gain=2.0)
        yield norm(f"{layer}.attention_norm", size)
        yield norm(f"{layer}.ffn_norm", size)
        yield _scale(f"{layer}.attention_layer_scale.gamma", size)
        yield _scale(f"{layer}.ffn_layer_scale.gamma", size)
    yield norm(f"{name}.norm", size)
    # What the published file holds too, and what the config says instead.
    yield TensorSpec(f"{name}.freqs_cis", (4, HEAD_DIM // 2, 2), 9.0)


def _scale(name: str, size: int) -> TensorSpec:
    """A layer scale, large enough to matter."""
    return TensorSpec(name, (size,), 0.1, 0.3)


def _conv_next(name: str, size: int) -> Iterator[TensorSpec]:
    yield _scale(f"{name}.gamma", size)
    yield from conv(f"{name}.dwconv.conv", 1, size, 7)
    yield norm(f"{name}.norm", size)
    yield bias(f"{name}.norm", size)
    yield from linear(f"{name}.pwconv1", size, 4 * size)
    yield from linear(f"{name}.pwconv2", 4 * size, size, gain=2.0)


def _decoder(shape: CodecShape) -> Iterator[TensorSpec]:
    name, size = "decoder.model", shape.decoder
    yield from _normed(f"{name}.0", shape.latent, size, 7)
    for index, rate in enumerate(DECODER_RATES, start=1):
        block = f"{name}.{index}.block"
        yield _snake(f"{block}.0", size)
        # Each output is the sum over two taps of all inputs.
        length = math.sqrt(rate / 2)
        yield from _lengths(f"{block}.1", (size, size // 2, 2 * rate), length)
        yield bias(f"{block}.1.conv", size // 2)
        size //= 2
        for unit in range(2, 2 + UNITS):
            yield from _residual(f"{block}.{unit}", size)
    last = len(DECODER_RATES) + 1
    yield _snake(f"{name}.{last}", size)
    yield from _normed(f"{name}.{last + 1}", size, 1, 7, gain=OUTPUT_GAIN)


def _encoder(shape: CodecShape) -> Iterator[TensorSpec]:
    name, size = "encoder.block", shape.encoder
    yield from _normed(f"{name}.0", 1, size, 7, gain=INPUT_GAIN)
    for index, rate in enumerate(ENCODER_RATES, start=1):
        block = f"{name}.{index}.block"
        for unit in range(UNITS):
            yield from _residual(f"{block}.{unit}", size)
        yield _snake(f"{block}.{UNITS}", size)
        yield from _normed(f"{block}.{UNITS + 1}", size, 2 * size, 2 * rate)
        size *= 2
    within = f"{name}.{len(ENCODER_RATES)}.block.{UNITS + 2}"
    yield from _transformer(within, size, shape.ffn, shape.encoder_layers)
    last = len(ENCODER_RATES) + 1
    yield _snake(f"{name}.{last}", size)
    yield from _normed(f"{name}.{last + 1}", size, shape.latent, 3)


def _residual(name: str, size: int) -> Iterator[TensorSpec]:
    yield _snake(f"{name}.block.0", size)
    yield from _normed(f"{name}.block.1", size, size, 7)
    yield _snake(f"{name}.block.2", size)
    yield from _normed(f"{name}.block.3", size, size, 1, gain=0.4)


def _snake(name: str, size: int) -> TensorSpec:
    return TensorSpec(f"{name}.alpha", (1, size, 1), 0.3, 1.0)


def _normed(
    name: str, inputs: int, outputs: int, kernel: int, gain: float = 1.0
) -> Iterator[TensorSpec]:
    """A convolution with a weight norm and a bias."""
    yield from _lengths(name, (outputs, inputs, kernel), gain)
    yield TensorSpec(f"{name}.conv.bias", (outputs,), 0.05 * gain)


def _lengths(name: str, shape: tuple[int, int, int], length: float) -> Iterator[TensorSpec]:
    stem = f"{name}.conv.parametrizations.weight.original"
    yield TensorSpec(f"{stem}0", (shape[0], 1, 1), 0.2 * length, length)
    yield TensorSpec(f"{stem}1", shape, 1.0)
