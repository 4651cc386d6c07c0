"""The shapes and rules of a checkpoint, as its configuration says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class FlowKind(StrEnum):
    """How the head makes a latent of noise."""

    LSD = "lsd"
    """In steps, each told where it begins and ends (Lagrangian self-distillation)."""
    DRIFTING = "drifting"
    """In one step: its output is the latent."""
    POINTWISE = "pointwise"
    """In one step: its output is added to the noise."""


@dataclass(frozen=True, slots=True)
class BackboneSizes:
    """The language model's layers."""

    size: int
    heads: int
    kv_heads: int
    head_dim: int
    layers: int
    inner: int
    period: float
    """Longest, of rotary positions."""
    output: int
    """Of what the heads read."""
    projected: bool
    """Whether a matrix makes that of the last layer's output."""

    @property
    def keys(self) -> int:
        """Numbers of a position's keys in one layer."""
        return self.kv_heads * self.head_dim


@dataclass(frozen=True, slots=True)
class TextRules:
    """What happens to a text before it becomes tokens."""

    padded: bool
    """Spaces go in front of a text of less than five words."""
    without_semicolons: bool
    ended: bool
    """A text that does not end as a sentence gets a mark."""
    capitalised: bool
    replaced: Mapping[str, str]
    """Characters that the model was not trained on."""


@dataclass(frozen=True, slots=True)
class SeanetSizes:
    """A stack of convolutions that changes the rate."""

    size: int
    """Channels at its slow end."""
    filters: int
    """Channels at its fast end; each stage doubles them."""
    units: int
    """Residual ones in a stage."""
    ratios: tuple[int, ...]
    """From the slow end."""
    kernel: int
    unit_kernel: int
    last_kernel: int
    dilation_base: int
    compress: int


@dataclass(frozen=True, slots=True)
class WindowedSizes:
    """A transformer of the codec."""

    size: int
    heads: int
    layers: int
    window: int
    """Positions that a position attends to, itself included."""
    period: float
    inner: int


@dataclass(frozen=True, slots=True)
class MimiSizes:
    """The codec."""

    sample_rate: int
    samples_per_frame: int
    latent: int
    encoded: int
    """Numbers of a frame of a recording."""
    stride: int
    """Positions of its transformers in a frame."""
    encoder: SeanetSizes
    encoder_transformer: WindowedSizes
    decoder: SeanetSizes
    decoder_transformer: WindowedSizes

    @property
    def frame_seconds(self) -> float:
        """How long a frame is heard."""
        return self.samples_per_frame / self.sample_rate


@dataclass(frozen=True, slots=True)
class PocketConfig:
    """A checkpoint."""

    weights: Path
    tokenizer: Path
    language: str | None
    """BCP 47."""
    vocabulary: int
    rank: int | None
    """Of the table of tokens; None: it is whole."""
    backbone: BackboneSizes
    flow: FlowKind
    flow_size: int
    flow_depth: int
    marks_voice: bool
    """A row stands before the voice's."""
    mimi: MimiSizes
    text: TextRules
    frames_after_eos: int | None
    """None: depends on the text."""
    temperature: float
    eos_threshold: float
