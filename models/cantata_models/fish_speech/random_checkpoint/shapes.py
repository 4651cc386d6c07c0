"""The sizes of random checkpoints, and their config.json."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cantata_models.fish_speech.config import CODEBOOKS, Layout


@dataclass(frozen=True, slots=True)
class StackShape:
    """A stack of the talker."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int


@dataclass(frozen=True, slots=True)
class CodecShape:
    """Of codec.pth."""

    semantic: int
    """Entries of the semantic codebook."""
    residual: int
    """Of each of the others."""
    latent: int
    ffn: int
    layers: int
    """Of the transformers over frames."""
    encoder: int
    """Channels behind the encoder's first convolution; 16 times as many behind its stages."""
    encoder_layers: int
    """Of its last stage."""
    decoder: int
    """Channels in front of the decoder's stages."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a whole checkpoint."""

    layout: Layout
    slow: StackShape
    fast: StackShape
    codes: int
    codec: CodecShape
    first_special: int | None = None
    """Id of the first special token; None: behind the ordinary ones."""
    theta: float = 10_000.0
    tied: bool = True
    end_gain: float = 0.02
    """Of the end token's row, by whose size speech ends soon or late."""
    norms: tuple[bool, bool] | None = None
    """Whether the slow and the fast stack normalise queries and keys; None: as published, and the
    config says so."""

    @property
    def normed(self) -> tuple[bool, bool]:
        """Which stacks do, the slow one first."""
        return self.norms or (True, False)


TINY_CODEC = CodecShape(
    semantic=64, residual=32, latent=128, ffn=96, layers=2, encoder=8, encoder_layers=1, decoder=48
)
TINY_S2 = Shape(
    layout=Layout.S2,
    slow=StackShape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, ffn=96),
    fast=StackShape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, ffn=96),
    codes=64,
    codec=TINY_CODEC,
)
TINY_S2_ENDING = replace(TINY_S2, end_gain=1.0)
"""Ends by itself."""
TINY_S1 = Shape(
    layout=Layout.S1,
    slow=StackShape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, ffn=96),
    fast=StackShape(hidden=48, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=64),
    codes=1280,
    codec=replace(TINY_CODEC, semantic=1280, residual=1024),
    tied=False,
)
"""The fast stack is narrower, and has more codes than can be chosen behind code 0."""
OTHER_S1 = replace(
    TINY_S1,
    slow=StackShape(hidden=64, layers=1, heads=2, kv_heads=2, head_dim=64, ffn=256),
    fast=StackShape(hidden=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=96),
    codes=1100,
    codec=replace(TINY_CODEC, semantic=1060, residual=1024),
    tied=True,
    norms=(False, True),
)
"""Only the fast stack normalises queries and keys, which the config does not say; each head has
keys of its own; the codec lacks some semantic codes."""
PUBLISHED_CODEC = CodecShape(
    semantic=4096,
    residual=1024,
    latent=1024,
    ffn=3072,
    layers=8,
    encoder=64,
    encoder_layers=4,
    decoder=1536,
)
PUBLISHED_S2 = Shape(
    layout=Layout.S2,
    slow=StackShape(hidden=2560, layers=36, heads=32, kv_heads=8, head_dim=128, ffn=9728),
    fast=StackShape(hidden=2560, layers=4, heads=32, kv_heads=8, head_dim=128, ffn=9728),
    codes=4096,
    codec=PUBLISHED_CODEC,
    first_special=151_643,
    theta=1_000_000.0,
)
"""S2 Pro: 9 GB in bfloat16."""
REDUCED_S2 = Shape(
    layout=Layout.S2,
    slow=StackShape(hidden=192, layers=6, heads=3, kv_heads=1, head_dim=64, ffn=576),
    fast=StackShape(hidden=192, layers=2, heads=3, kv_heads=1, head_dim=64, ffn=576),
    codes=4096,
    codec=CodecShape(
        semantic=4096,
        residual=1024,
        latent=192,
        ffn=576,
        layers=2,
        encoder=16,
        encoder_layers=2,
        decoder=64,
    ),
)
"""All codes and strides of S2 Pro, a thirteenth of the talker's width: two CPU cores play eight
streams of it in real time."""


def model_config(shape: Shape, vocabulary: int) -> dict[str, Any]:
    """Return config.json.

    Args:
        shape: of the checkpoint.
        vocabulary: rows of the table of tokens.
    """
    slow = _stack(shape.slow, "") | {
        "max_seq_len": 32_768,
        "norm_eps": 1e-6,
        "rope_base": shape.theta,
        "tie_word_embeddings": shape.tied,
        "vocab_size": vocabulary,
    }
    if shape.layout is Layout.S2:
        fast = _stack(shape.fast, "") | {
            "num_codebooks": CODEBOOKS,
            "text_dim": shape.slow.hidden,
            "tie_word_embeddings": False,
            "vocab_size": shape.codes,
        }
        if shape.norms is None:
            slow["attention_qk_norm"], fast["attention_qk_norm"] = shape.normed
        return {"model_type": shape.layout, "text_config": slow, "audio_decoder_config": fast}
    fast = _stack(shape.fast, "fast_")
    if shape.norms is None:
        slow["attention_qk_norm"], fast["fast_attention_qk_norm"] = shape.normed
    fast["n_fast_layer"] = fast.pop("fast_n_layer")
    return {
        "model_type": shape.layout,
        **slow,
        **fast,
        "codebook_size": shape.codes,
        "num_codebooks": CODEBOOKS,
        "scale_codebook_embeddings": True,
    }


def _stack(stack: StackShape, prefix: str) -> dict[str, Any]:
    sizes = {
        "dim": stack.hidden,
        "n_layer": stack.layers,
        "n_head": stack.heads,
        "n_local_heads": stack.kv_heads,
        "head_dim": stack.head_dim,
        "intermediate_size": stack.ffn,
    }
    return {f"{prefix}{name}": value for name, value in sizes.items()}
