"""Names and shapes of the tensors in ae.safetensors."""

from __future__ import annotations

from collections.abc import Iterator

from cantata_layers.random_tensors import TensorSpec, bias, norm, weight
from cantata_models.bagel.random_checkpoint.shapes import COLOURS, LATENTS, Shape


def vae_tensors(shape: Shape) -> Iterator[TensorSpec]:
    """Yield every tensor."""
    widths = shape.vae_widths
    yield from _conv("encoder.conv_in", COLOURS, widths[0])
    for level, width in enumerate(widths):
        name = f"encoder.down.{level}"
        yield from _residuals(name, widths[max(level - 1, 0)], width, shape.vae_blocks)
        if level < len(widths) - 1:
            yield from _conv(f"{name}.downsample.conv", width, width)
    yield from _middle("encoder", widths[-1])
    yield from _norm("encoder.norm_out", widths[-1])
    yield from _conv("encoder.conv_out", widths[-1], 2 * LATENTS)
    yield from _conv("decoder.conv_in", LATENTS, widths[-1])
    yield from _middle("decoder", widths[-1])
    for level, width in enumerate(widths):
        name = f"decoder.up.{level}"
        before = widths[min(level + 1, len(widths) - 1)]
        yield from _residuals(name, before, width, shape.vae_blocks + 1)
        if level:
            yield from _conv(f"{name}.upsample.conv", width, width)
    yield from _norm("decoder.norm_out", widths[0])
    yield from _conv("decoder.conv_out", widths[0], COLOURS, gain=0.5)


def _conv(
    name: str, inputs: int, outputs: int, kernel: int = 3, gain: float = 1.0
) -> Iterator[TensorSpec]:
    yield weight(name, outputs, inputs, kernel, kernel, gain=gain)
    yield bias(name, outputs)


def _norm(name: str, channels: int) -> Iterator[TensorSpec]:
    yield norm(name, channels)
    yield bias(name, channels)


def _residual(name: str, inputs: int, outputs: int) -> Iterator[TensorSpec]:
    yield from _norm(f"{name}.norm1", inputs)
    yield from _conv(f"{name}.conv1", inputs, outputs)
    yield from _norm(f"{name}.norm2", outputs)
    yield from _conv(f"{name}.conv2", outputs, outputs)
    if inputs != outputs:
        yield from _conv(f"{name}.nin_shortcut", inputs, outputs, kernel=1)


def _residuals(name: str, inputs: int, outputs: int, count: int) -> Iterator[TensorSpec]:
    for block in range(count):
        yield from _residual(f"{name}.block.{block}", outputs if block else inputs, outputs)


def _middle(side: str, channels: int) -> Iterator[TensorSpec]:
    yield from _residual(f"{side}.mid.block_1", channels, channels)
    yield from _norm(f"{side}.mid.attn_1.norm", channels)
    for part in ("q", "k", "v", "proj_out"):
        yield from _conv(f"{side}.mid.attn_1.{part}", channels, channels, kernel=1)
    yield from _residual(f"{side}.mid.block_2", channels, channels)
