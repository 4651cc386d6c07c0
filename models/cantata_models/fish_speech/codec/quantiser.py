"""The quantisers: one semantic codebook, then residual ones.

A codebook projects what is left to the width of its entries, takes the entry with the largest
cosine, and projects that back (factorised and normalised codes: Yu et al., 2022; Kumar et al.,
2023).

Letters: T frames, Q codebooks, V entries of one, D their width, N the latent's width.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from cantata_layers.linear import Linear
from cantata_layers.weights import Weights
from cantata_models.fish_speech.codec.tensors import CodecTensors

SEMANTIC, RESIDUAL = "quantizer.semantic_quantizer", "quantizer.quantizer"
QUANTISERS = (f"{SEMANTIC}.", f"{RESIDUAL}.")
"""What their tensors' names begin with."""


class Codebook:
    """One codebook; every entry is projected once, on loading."""

    def __init__(self, weights: Weights, name: str, shape: tuple[int, ...], latent: int) -> None:
        size, width = shape
        entries = weights.take(f"{name}.codebook.weight", size, width)
        out = weights.take(f"{name}.out_proj.weight", latent, width, 1)[..., 0]
        bias = weights.take(f"{name}.out_proj.bias", latent)
        # Rounded once: a table must not depend on how a product adds.
        self.latents = (entries.double() @ out.double().t()).float() + bias
        """[V, N]."""
        into = weights.take(f"{name}.in_proj.weight", width, latent, 1)[..., 0]
        self._into = Linear(into, weights.take(f"{name}.in_proj.bias", width))
        self._directions = Linear(functional.normalize(entries))

    def nearest(self, latents: torch.Tensor) -> torch.Tensor:
        """[T, N] -> [T] int64. A latent's length does not change which cosine is the largest."""
        return self._directions(self._into(latents)).argmax(dim=-1)


class Codebooks:
    """All codebooks, the semantic one first."""

    def __init__(self, tensors: CodecTensors, weights: Weights) -> None:
        books = [
            f"{part}.quantizers.{index}"
            for part in (SEMANTIC, RESIDUAL)
            for index in range(tensors.count(f"{part}.quantizers", "codebook.weight"))
        ]
        shapes = [tensors.shape(f"{book}.codebook.weight", 2) for book in books]
        self.sizes = tuple(shape[0] for shape in shapes)
        self.latent_dim = tensors.shape(f"{SEMANTIC}.quantizers.0.out_proj.weight", 3)[0]
        self._books = [
            Codebook(weights, book, shape, self.latent_dim)
            for book, shape in zip(books, shapes, strict=True)
        ]
        self._last = torch.tensor(self.sizes, device=self._books[0].latents.device) - 1

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, T, Q] codes -> [B, T, N]. A code that a codebook lacks becomes its last one."""
        known = torch.minimum(codes, self._last)
        total = self._books[0].latents[known[..., 0]]
        for index, book in enumerate(self._books[1:], start=1):
            total = total + book.latents[known[..., index]]
        return total

    def encode(self, latents: torch.Tensor) -> torch.Tensor:
        """[T, N] -> [T, Q] int64; each codebook describes what the ones before it left."""
        codes = []
        for book in self._books:
            codes.append(book.nearest(latents))
            latents = latents - book.latents[codes[-1]]
        return torch.stack(codes, dim=-1)
