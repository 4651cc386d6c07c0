"""Sizes of random checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from cantata_layers.qwen_image.config.pipeline import Family


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
