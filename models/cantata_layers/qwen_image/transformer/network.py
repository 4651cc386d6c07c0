"""The denoiser over all rows of a step.

Letters: N noise tokens of a row, R reference tokens, T text tokens, E columns of a text embedding,
P numbers of a token, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from cantata.contract.model.row_products import RowLinear
from cantata_layers.qwen_image.config import TransformerConfig
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.transformer.blocks import BlockStack, StreamLayout, TransformerBlock
from cantata_layers.qwen_image.transformer.modulation import (
    Modulation,
    Modulations,
    ModulationWeights,
    RmsNorm,
    layer_norm,
)
from cantata_layers.qwen_image.transformer.packing import Segment, by_row
from cantata_layers.qwen_image.transformer.rotation import Positions, TokenRotation
from cantata_layers.weights import WeightMap

NO_NOISE = 0.0
MODULATIONS = "modulations."
NAMES = WeightMap(
    {
        "transformer_blocks.{}.img_mod.1.{}": f"{MODULATIONS}image.{{}}.{{}}",
        "transformer_blocks.{}.txt_mod.1.{}": f"{MODULATIONS}text.{{}}.{{}}",
        "time_text_embed.timestep_embedder.{}": f"{MODULATIONS}embedder.{{}}",
        "norm_out.linear.{}": f"{MODULATIONS}last.{{}}",
        "{}": "layers.{}",
    }
)


@dataclass(frozen=True, slots=True)
class ReferenceTokens:
    """A picture to be changed."""

    tokens: torch.Tensor
    """[R, P] latents."""
    grid: Grid


@dataclass(frozen=True, slots=True)
class Condition:
    """Inputs of a branch that are the same in every step; `VelocityPredictor.prepare` makes
    them."""

    text: torch.Tensor
    """[T, D]"""
    references: torch.Tensor
    """[R, D], of all pictures; R may be 0."""
    text_rotation: TokenRotation
    picture_rotation: TokenRotation
    """Of noise and references."""
    noise_tokens: int
    """N."""


@dataclass(frozen=True, slots=True)
class Row:
    """One branch of one request in one step."""

    condition: Condition
    latents: torch.Tensor
    """[N, P]"""
    share: float
    """Of noise in the latents, 0 to 1."""


class Layers(nn.Module):
    """The denoiser's weights, without those of the modulations."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.img_in = RowLinear(config.token_width, config.width)
        self.txt_norm = RmsNorm(config.text_width)
        self.txt_in = RowLinear(config.text_width, config.width)
        self.transformer_blocks = nn.ModuleList(
            TransformerBlock(config) for _ in range(config.layers)
        )
        self.proj_out = RowLinear(config.width, config.token_width)


class DenoiserWeights(nn.Module):
    """All weights; those of the modulations may be on another device."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = Layers(config)
        self.modulations = ModulationWeights(config.width, config.layers)


def weight_shapes(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights by their published names."""
    with torch.device("meta"):
        return NAMES.shapes(DenoiserWeights(config))


class VelocityPredictor:
    """Predicts velocities. In float32 on a CPU, a row's result does not depend on the others.

    Args:
        layers: on the device where to compute, of one dtype.
        modulations: on the same device.
    """

    def __init__(self, config: TransformerConfig, layers: Layers, modulations: Modulations) -> None:
        self._config, self._layers, self.modulations = config, layers, modulations
        weight = layers.img_in.weight
        self.device, self._dtype = weight.device, weight.dtype
        self._blocks = [b for b in layers.transformer_blocks if isinstance(b, TransformerBlock)]
        self._positions = Positions(config.rope_axes, self.device)

    @torch.inference_mode()
    def prepare(
        self, text: torch.Tensor, grid: Grid, references: Sequence[ReferenceTokens] = ()
    ) -> Condition:
        """Compute what all steps of a branch share.

        Args:
            text: [T, E] embeddings, T at least 1.
            references: in their order.

        Raises:
            InvalidRequest: text or pictures have more positions than the model knows.
        """
        grids = [grid, *(reference.grid for reference in references)]
        rotations = self._positions.text(len(text), grids), self._positions.pictures(grids)
        latents = [self._on_device(reference.tokens) for reference in references]
        tokens = torch.cat(latents) if latents else None
        width = self._config.width
        empty = torch.empty(0, width, device=self.device, dtype=self._dtype)
        return Condition(
            text=self._layers.txt_in(self._layers.txt_norm(self._on_device(text))),
            references=empty if tokens is None else self._layers.img_in(tokens),
            text_rotation=rotations[0],
            picture_rotation=rotations[1],
            noise_tokens=grid.tokens,
        )

    def group(self, condition: Condition) -> None:
        """Any rows share a forward."""
        return

    @torch.inference_mode()
    def velocities(
        self, rows: Sequence[Row], through: Callable[[BlockStack], None] | None = None
    ) -> list[torch.Tensor]:
        """The velocity of each row: [N, P] float32, noise minus picture. `through`: takes the rows
        through the blocks; None: through each of them."""
        shares = list(dict.fromkeys(row.share for row in rows))
        indexes = [shares.index(row.share) for row in rows]
        still = len(shares) if self._config.still_references else None
        modulations = self.modulations.of([*shares, NO_NOISE] if still else shares)
        places = [_lay_out(row, index, still) for row, index in zip(rows, indexes, strict=True)]
        texts = torch.cat([row.condition.text for row in rows])
        stack = BlockStack(self._blocks, modulations, places, texts, self._collect_pictures(rows))
        if through is None:
            stack.run(range(stack.blocks))
        else:
            through(stack)
        return self._run_last(rows, stack, [modulations[index] for index in indexes])

    def _collect_pictures(self, rows: Sequence[Row]) -> torch.Tensor:
        """[I, D]: of each row its noise, then its references."""
        noise = self._layers.img_in(torch.cat([self._on_device(row.latents) for row in rows]))
        lengths = [row.condition.noise_tokens for row in rows]
        parts = zip(by_row(noise, lengths), rows, strict=True)
        return torch.cat([x for own, row in parts for x in (own, row.condition.references)])

    def _run_last(
        self, rows: Sequence[Row], stack: BlockStack, modulations: Sequence[Modulation]
    ) -> list[torch.Tensor]:
        lengths = [row.condition.noise_tokens for row in rows]
        own = [
            layer_norm(part[:length]) * (1 + modulation.last[0]) + modulation.last[1]
            for part, length, modulation in zip(stack.images, lengths, modulations, strict=True)
        ]
        return list(by_row(self._layers.proj_out(torch.cat(own)).float(), lengths))

    def _on_device(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.device, self._dtype)


def _lay_out(row: Row, index: int, still: int | None) -> tuple[StreamLayout, StreamLayout]:
    """Of a row's text and pictures. `still`: the modulation of references, if it is not the row's
    own, `index`."""
    condition = row.condition
    references = Segment(len(condition.references), index if still is None else still)
    return (
        StreamLayout((Segment(len(condition.text), index),), condition.text_rotation),
        StreamLayout(
            (Segment(condition.noise_tokens, index), references), condition.picture_rotation
        ),
    )
