"""Names and shapes of the denoiser's tensors."""

from __future__ import annotations

from collections.abc import Iterator

from cantata_layers.random_tensors import TensorSpec, linear, norm
from cantata_models.qwen_image.random_checkpoint.shapes import Shape

TOKEN, WAVES = 64, 256


def denoiser_tensors(shape: Shape) -> Iterator[TensorSpec]:
    """Yield every tensor of a transformer/ folder."""
    width = shape.width
    yield from linear("img_in", TOKEN, width)
    yield norm("txt_norm", shape.text_width)
    yield from linear("txt_in", shape.text_width, width)
    yield from linear("time_text_embed.timestep_embedder.linear_1", WAVES, width, gain=2.0)
    yield from linear("time_text_embed.timestep_embedder.linear_2", width, width, gain=2.0)
    for number in range(shape.layers):
        yield from _block(f"transformer_blocks.{number}", shape)
    yield from linear("norm_out.linear", width, 2 * width)
    yield from linear("proj_out", width, TOKEN)


def _block(name: str, shape: Shape) -> Iterator[TensorSpec]:
    width = shape.width
    for side in ("img", "txt"):
        yield from linear(f"{name}.{side}_mod.1", width, 6 * width)
        yield from linear(f"{name}.{side}_mlp.net.0.proj", width, 4 * width)
        yield from linear(f"{name}.{side}_mlp.net.2", 4 * width, width)
    for layer in ("to_q", "to_k", "to_v", "to_out.0", "to_add_out"):
        yield from linear(f"{name}.attn.{layer}", width, width)
    for layer in ("add_q_proj", "add_k_proj", "add_v_proj"):
        yield from linear(f"{name}.attn.{layer}", width, width)
    for layer in ("norm_q", "norm_k", "norm_added_q", "norm_added_k"):
        yield norm(f"{name}.attn.{layer}", shape.head_dim, mean=1.5)
