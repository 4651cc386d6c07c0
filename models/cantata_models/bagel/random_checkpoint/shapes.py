"""Sizes of a random checkpoint, under the names of the published files."""

from __future__ import annotations

from dataclasses import dataclass

from cantata_layers.random_qwen_tokenizer import ordinary_tokens

WORDS = ("a", "Ġred", "Ġheart", "<think>", "</think>")
MARKS = {
    "<|endoftext|>": 0,
    "<|im_start|>": 1,
    "<|im_end|>": 2,
    "<|vision_start|>": 9,
    "<|vision_end|>": 10,
    "<|vision_pad|>": 11,
    "<|image_pad|>": 12,
    "<|video_pad|>": 13,
}
"""Published ids, less that of the first."""


@dataclass(frozen=True, slots=True)
class BagelShape:
    """Sizes."""

    width: int = 64
    inner: int = 96
    layers: int = 2
    heads: int = 4
    key_heads: int = 2
    vision_width: int = 48
    vision_inner: int = 80
    vision_layers: int = 3
    """As the file says: the last one has no weights."""
    vision_heads: int = 4
    vision_side: int = 70
    """Patches of the largest picture."""
    latent_side: int = 64
    """Tokens of the largest picture."""
    vae_widths: tuple[int, ...] = (32, 32, 32, 64)
    vae_blocks: int = 1

    @property
    def vocabulary(self) -> int:
        """Tokens; each is spelled somehow, so that any thought is a text."""
        return max(special_ids().values()) + 1


TINY = BagelShape()
REDUCED = BagelShape(
    width=512,
    inner=2560,
    layers=8,
    heads=8,
    key_heads=2,
    vision_width=256,
    vision_inner=1024,
    vision_layers=7,
    vae_widths=(32, 64, 128, 128),
    vae_blocks=2,
)
"""A seventh of the published width, for a few CPU cores."""
SIZES = {"tiny": TINY, "reduced": REDUCED}
PATCH, LATENTS = 14, 16


def special_ids() -> dict[str, int]:
    """The marks' ids in the small vocabulary, in their published order."""
    first = ordinary_tokens(WORDS)
    return {token: first + offset for token, offset in MARKS.items()}
