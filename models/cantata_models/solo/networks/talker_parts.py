"""The talker's parts around the backbone, shared by the training and serving talkers.

Letters: N rows, R requests, D hidden size, Q codebooks, V codes each, Z latent size.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata_models.solo.networks.layers import TrainableRowLinear, in_training, to_latents
from cantata_models.solo.networks.packed_product import PackedProduct


class FrameEmbedding(nn.Module):
    """Embeds the previous frame as an input row: [N, Q] codes -> [N, D].

    A code's embedding is its codebook vector. The sum of these vectors, which is the decoder's
    input, is projected. This needs far fewer weights than Q tables of V rows, and codes that sound
    alike have similar embeddings.
    """

    codebooks: torch.Tensor

    def __init__(self, codebooks: int, codes: int, latent: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("codebooks", torch.zeros(codebooks, codes, latent))
        self.first = nn.Parameter(torch.zeros(hidden))
        self.up = TrainableRowLinear(latent, hidden)
        self.down = TrainableRowLinear(hidden, hidden)

    def latents(self, codes: torch.Tensor) -> torch.Tensor:
        """[N, Q] int64 codes -> [N, Z] sums of their codebook vectors."""
        return to_latents(self.codebooks, codes)

    def project(self, latents: torch.Tensor) -> torch.Tensor:
        """[..., Z] -> [..., D]."""
        row: torch.Tensor = self.down(functional.gelu(self.up(latents)))
        return row

    def bos(self) -> torch.Tensor:
        """[D]: the learned row for "no previous frame"."""
        return self.first

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        return self.project(self.latents(codes))


class LatentHead(nn.Module):
    """Hidden state -> latent -> codes.

    Code 0 is sampled from `code0_logits` (greedy = the nearest entry). The other codebooks then
    quantize the residual. Every operation acts on one row at a time, in a fixed order.
    """

    codebooks: torch.Tensor
    mean: torch.Tensor
    std: torch.Tensor

    def __init__(
        self, codebooks: int, codes: int, latent: int, hidden: int, temperature: float
    ) -> None:
        super().__init__()
        self.register_buffer("codebooks", torch.zeros(codebooks, codes, latent))
        self.register_buffer("mean", torch.zeros(latent))
        self.register_buffer("std", torch.ones(latent))
        self.temperature = temperature
        self.out = TrainableRowLinear(hidden, latent)
        # A plain attribute: derived from the codebooks, so not part of a checkpoint.
        self._nearness_to: dict[int, PackedProduct] = {}

    def normalized(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., D] -> [..., Z], zero mean and unit deviation over the training data."""
        latent: torch.Tensor = self.out(hidden)
        return latent

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """[R, D] -> z [R, Z], in the codec's units."""
        return self.normalized(hidden) * self.std + self.mean

    def code0_logits(self, z: torch.Tensor) -> torch.Tensor:
        """z [R, Z] -> [R, V]: -||z - entry||^2 / tau, without ||z||^2, equal for every entry."""
        return self._measure_nearness(0, z) * (2 / self.temperature)

    def complete(self, z: torch.Tensor, code0: torch.Tensor) -> torch.Tensor:
        """z [R, Z] and sampled first codes [R] int64 -> frames [R, Q] int64."""
        codes = [code0]
        residual = z - self.codebooks[0][code0]
        for index in range(1, len(self.codebooks)):
            nearest = self._measure_nearness(index, residual).argmax(dim=1)
            residual = residual - self.codebooks[index][nearest]
            codes.append(nearest)
        return torch.stack(codes, dim=1)

    def quantize(self, z: torch.Tensor) -> torch.Tensor:
        """z [R, Z] -> frames [R, Q] int64, greedy for every codebook."""
        return self.complete(z, self.code0_logits(z).argmax(dim=1))

    def _measure_nearness(self, index: int, rows: torch.Tensor) -> torch.Tensor:
        """[R, Z] -> [R, V]: row . entry - ||entry||^2 / 2, greatest for the nearest entry."""
        book = self.codebooks[index]
        if in_training(rows, book) or rows.device.type != "cpu":
            return functional.linear(rows, book, _compute_half_norms(book))
        packed = self._nearness_to.get(index)
        if packed is None or not packed.is_for(book):
            packed = self._nearness_to[index] = PackedProduct(book, _compute_half_norms(book))
        return packed(rows)


def _compute_half_norms(book: torch.Tensor) -> torch.Tensor:
    """[V, Z] -> [V]: -||entry||^2 / 2."""
    return book.square().sum(dim=1) / -2
