"""Trains the residual quantizer: k-means initialization, moving averages, dead-code restarts."""

from __future__ import annotations

import torch

from cantata_models.solo.networks.codec_encoder import ResidualQuantizer

DECAY = 0.99
DEAD_BELOW = 0.02
"""A code with fewer expected uses per step is moved to a random residual."""
DROPOUT = 0.3
"""Share of rows that use only the first few codebooks, a random number of them."""
KMEANS_ROUNDS = 12


def nearest_code(rows: torch.Tensor, book: torch.Tensor) -> torch.Tensor:
    """[N, Z], [V, Z] -> [N] int64."""
    return (book.square().sum(dim=1) - 2 * rows @ book.t()).argmin(dim=1)


def kmeans(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Returns [count, Z] centres of [N, Z] rows."""
    book = rows[torch.randperm(len(rows))[:count]].clone()
    for _ in range(KMEANS_ROUNDS):
        codes = nearest_code(rows, book)
        uses = torch.bincount(codes, minlength=count).clamp(min=1)[:, None]
        sums = torch.zeros_like(book).index_add_(0, codes, rows)
        book = torch.where(uses > 1, sums / uses, book)
    return book


class QuantizerTrainer:
    """Maintains the moving averages behind a quantizer's codebooks."""

    def __init__(self, quantizer: ResidualQuantizer) -> None:
        self.quantizer = quantizer
        books = quantizer.codebooks
        self.uses = torch.ones(books.shape[:2], device=books.device)
        self.sums = books.clone()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the state for a checkpoint."""
        return {"uses": self.uses, "sums": self.sums}

    def load_state_dict(self, state_dict: dict[str, torch.Tensor], /) -> None:
        """Restore what `state_dict` returned."""
        self.uses, self.sums = state_dict["uses"], state_dict["sums"]

    @torch.no_grad()
    def start(self, rows: torch.Tensor) -> None:
        """Initializes the empty codebooks, in order, by k-means on [N, Z] latents."""
        residual = rows
        for index in range(len(self.quantizer.codebooks)):
            book = self.quantizer.codebooks[index].clone()
            if not book.any():
                book = kmeans(residual, len(book))
                self.quantizer.codebooks[index] = book
            residual = residual - book[nearest_code(residual, book)]
        self.uses.fill_(1.0)
        self.sums = self.quantizer.codebooks.clone()

    def quantize(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Quantizes with straight-through gradients and updates the codebooks.

        Args:
            z: [B, T, Z].

        Returns:
            The quantized [B, T, Z] and the commitment loss [].
        """
        rows = z.reshape(-1, z.shape[-1])
        books = self.quantizer.codebooks
        depth = torch.full((len(z),), len(books), device=z.device)
        dropped = torch.rand(len(z), device=z.device) < DROPOUT
        depth[dropped] = torch.randint(1, len(books), (len(z),), device=z.device)[dropped]
        depth = depth.repeat_interleave(z.shape[1])
        residual, total = rows.detach(), torch.zeros_like(rows)
        commitment = torch.zeros((), device=z.device)
        for index, book in enumerate(books):
            codes = nearest_code(residual, book)
            chosen = book[codes].clone()
            used = (index < depth)[:, None]
            self._update(index, residual, codes)
            total = total + chosen * used
            commitment = commitment + ((rows - total.detach()).square() * used).mean()
            residual = residual - chosen
        passed = rows + (total - rows).detach()
        return passed.view_as(z), commitment / len(books)

    @torch.no_grad()
    def _update(self, index: int, rows: torch.Tensor, codes: torch.Tensor) -> None:
        book = self.quantizer.codebooks[index]
        uses = torch.bincount(codes, minlength=len(book)).float()
        sums = torch.zeros_like(book).index_add_(0, codes, rows)
        self.uses[index].mul_(DECAY).add_(uses, alpha=1 - DECAY)
        self.sums[index].mul_(DECAY).add_(sums, alpha=1 - DECAY)
        dead = self.uses[index] < DEAD_BELOW
        if dead.any():
            fresh = rows[torch.randint(0, len(rows), (int(dead.sum()),), device=rows.device)]
            self.sums[index][dead] = fresh * 0.1
            self.uses[index][dead] = 0.1
        book.copy_(self.sums[index] / self.uses[index][:, None])
