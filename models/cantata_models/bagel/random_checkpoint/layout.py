"""Names and shapes of the tensors in ema.safetensors."""

from __future__ import annotations

from collections.abc import Iterator

from cantata_layers.random_qwen3 import PEAKY
from cantata_layers.random_tensors import TensorSpec, bias, linear, norm, weight
from cantata_models.bagel.random_checkpoint.shapes import (
    COLOURS,
    LATENTS,
    PATCH,
    SINUSOIDS,
    Shape,
)

LANGUAGE = "language_model.model"
TOKEN = 4 * LATENTS
"""Numbers of a picture's token."""


def model_tensors(shape: Shape) -> Iterator[TensorSpec]:
    """Yield every tensor."""
    width = shape.width
    yield TensorSpec(f"{LANGUAGE}.embed_tokens.weight", (shape.vocabulary, width), 1.0)
    for suffix in ("", "_moe_gen"):
        for index in range(shape.layers):
            yield from _layer(f"{LANGUAGE}.layers.{index}", suffix, shape)
        yield norm(f"{LANGUAGE}.norm{suffix}", width)
    yield weight("language_model.lm_head", shape.vocabulary, width)
    yield from linear("vae2llm", TOKEN, width)
    yield from linear("llm2vae", width, TOKEN)
    yield from linear("time_embedder.mlp.0", SINUSOIDS, width)
    yield from linear("time_embedder.mlp.2", width, width)
    yield TensorSpec("latent_pos_embed.pos_embed", (shape.latent_side**2, width), 0.7)
    yield from _vision(shape)


def _layer(name: str, suffix: str, shape: Shape) -> Iterator[TensorSpec]:
    width, head = shape.width, shape.width // shape.heads
    attention = f"{name}.self_attn"
    for part, outputs in (
        ("q", width),
        ("k", shape.key_heads * head),
        ("v", shape.key_heads * head),
    ):
        yield from linear(f"{attention}.{part}_proj{suffix}", width, outputs)
    yield weight(f"{attention}.o_proj{suffix}", width, width, gain=2.0)
    # Below that of a Qwen3: keys of one position, as a picture's, are alike enough.
    yield norm(f"{attention}.q_norm{suffix}", head, PEAKY / 2)
    yield norm(f"{attention}.k_norm{suffix}", head, PEAKY / 2)
    yield weight(f"{name}.mlp{suffix}.gate_proj", shape.inner, width)
    yield weight(f"{name}.mlp{suffix}.up_proj", shape.inner, width)
    yield weight(f"{name}.mlp{suffix}.down_proj", width, shape.inner, gain=2.0)
    yield norm(f"{name}.input_layernorm{suffix}", width)
    yield norm(f"{name}.post_attention_layernorm{suffix}", width)


def _vision(shape: Shape) -> Iterator[TensorSpec]:
    width, model = shape.vision_width, "vit_model.vision_model"
    yield from linear(f"{model}.embeddings.patch_embedding", COLOURS * PATCH**2, width)
    places = shape.vision_side**2
    yield TensorSpec(f"{model}.embeddings.position_embedding.weight", (places, width), 0.7)
    for index in range(shape.vision_layers - 1):
        name = f"{model}.encoder.layers.{index}"
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield from linear(f"{name}.self_attn.{part}", width, width, gain=1.5)
        yield from linear(f"{name}.mlp.fc1", width, shape.vision_inner)
        yield from linear(f"{name}.mlp.fc2", shape.vision_inner, width)
        for part in ("layer_norm1", "layer_norm2"):
            yield from _layer_norm(f"{name}.{part}", width)
    yield from _layer_norm(f"{model}.post_layernorm", width)
    yield from linear("connector.fc1", width, shape.width)
    yield from linear("connector.fc2", shape.width, shape.width)
    yield TensorSpec("vit_pos_embed.pos_embed", (places, shape.width), 0.7)


def _layer_norm(name: str, width: int) -> Iterator[TensorSpec]:
    yield norm(name, width)
    yield bias(name, width)
