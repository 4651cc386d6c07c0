"""The residual quantizer: each codebook describes what the ones before it left.

A codebook projects the residual to the width of its entries, takes the entry with the largest
cosine, and projects that back (factorised and normalized codes: Yu et al., 2022; Kumar et al.,
2023). Projections are convolutions of one position with normalized weights.

Letters: T frames, Q codebooks in use, V entries of each, D their width, R the residual's width,
N the latent's width, I inputs, O outputs.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from cantata_layers.exact_layers import Linear
from cantata_layers.weights import Weights
from cantata_models.moss_tts.tokenizer_config import QuantizerConfig

QUANTIZER = "quantizer."
"""What its tensors' names start with."""


class Dequantizer:
    """[B, T, Q] codes -> [B, T, N] latents. Every entry is projected once, on loading."""

    def __init__(self, weights: Weights, config: QuantizerConfig) -> None:
        weight, self._bias = _load_projection(
            weights, "output_proj", config.residual, config.latent
        )
        self._tables = [
            _multiply(_Entries(weights, index, config).residuals, weight)
            for index in range(config.codebooks)
        ]

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        total = self._bias
        for book, table in enumerate(self._tables):
            total = total + table[codes[..., book]]
        return total


class Quantizer:
    """[T, N] latents -> [T, Q] int64 codes."""

    def __init__(self, weights: Weights, config: QuantizerConfig) -> None:
        self._into = Linear(
            *_load_projection(weights, "input_proj", config.latent, config.residual)
        )
        self._books = [_Codebook(weights, index, config) for index in range(config.codebooks)]

    def __call__(self, latents: torch.Tensor) -> torch.Tensor:
        residual, codes = self._into(latents), []
        for book in self._books:
            nearest = book.nearest(residual)
            residual = residual - book.residuals[nearest]
            codes.append(nearest)
        return torch.stack(codes, dim=-1)


class _Entries:
    """A codebook's entries, in its own width and in the residual's."""

    def __init__(self, weights: Weights, index: int, config: QuantizerConfig) -> None:
        name = f"quantizers.{index}"
        self.own = weights.take(
            f"{name}.codebook.weight", config.codebook_size, config.codebook_dim
        )
        """[V, D]."""
        weight, bias = _load_projection(
            weights, f"{name}.out_proj", config.codebook_dim, config.residual
        )
        self.residuals = _multiply(self.own, weight) + bias
        """[V, R]."""


class _Codebook:
    """Finds the entries nearest to residuals."""

    def __init__(self, weights: Weights, index: int, config: QuantizerConfig) -> None:
        entries = _Entries(weights, index, config)
        self.residuals = entries.residuals
        """[V, R]: what each entry takes from the residual."""
        self._into = Linear(
            *_load_projection(
                weights, f"quantizers.{index}.in_proj", config.residual, config.codebook_dim
            )
        )
        self._directions = Linear(functional.normalize(entries.own))

    def nearest(self, residual: torch.Tensor) -> torch.Tensor:
        """[T, R] -> [T] int64. A residual's length does not change which cosine is the largest."""
        return self._directions(self._into(residual)).argmax(dim=-1)


def _load_projection(
    weights: Weights, name: str, inputs: int, outputs: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """[O, I] and [O]: a convolution of one position, its weight norm folded."""
    length = weights.take(f"{name}.parametrizations.weight.original0", outputs, 1, 1)[..., 0]
    rows = weights.take(f"{name}.parametrizations.weight.original1", outputs, inputs, 1)[..., 0]
    folded = length * rows / rows.norm(dim=1, keepdim=True)
    return folded, weights.take(f"{name}.bias", outputs)


def _multiply(entries: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """[V, I] x [O, I] -> [V, O], rounded once: a table must not depend on how a product adds."""
    return (entries.double() @ weight.double().t()).float()
