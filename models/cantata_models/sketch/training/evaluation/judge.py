"""A classifier that names pictures: trained on the real ones alone, it judges the drawn ones."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cantata_models.sketch.training.autoencoder_training import as_tensor
from cantata_models.sketch.training.pictures import Pixels

logger = logging.getLogger(__name__)

SIDE = 64
"""It looks at pictures of half the size."""
BATCH = 64
RATE = 2e-3
STEPS = 2000
MAX_SHIFT, MAX_SCALE = 0.08, 0.12
BLURRED_SHARE, RECOLOURED_SHARE = 0.5, 0.6


def new_judge(kinds: int) -> nn.Sequential:
    """Makes a convolutional classifier of `[n, 3, 64, 64]` in -1..1."""
    layers: list[nn.Module] = []
    for before, after in ((3, 24), (24, 48), (48, 96), (96, 160)):
        layers += [
            nn.Conv2d(before, after, 3, stride=2, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(160 * 16, 128), nn.Linear(128, kinds))


def shrunk(pictures: Tensor) -> Tensor:
    """Maps `[n, 3, 128, 128]` to `[n, 3, 64, 64]`."""
    return functional.avg_pool2d(pictures, 2)


def disturbed(pictures: Tensor) -> Tensor:
    """Shifts, scales, blurs and recolours `[n, 3, 64, 64]`, each picture differently."""
    n = len(pictures)
    scale = 1 + MAX_SCALE * (2 * torch.rand(n, 1) - 1)
    shift = MAX_SHIFT * 2 * (2 * torch.rand(n, 2) - 1)
    grid = torch.zeros(n, 2, 3)
    grid[:, 0, 0] = grid[:, 1, 1] = scale[:, 0]
    grid[:, :, 2] = shift
    places = functional.affine_grid(grid, list(pictures.shape), align_corners=False)
    moved = functional.grid_sample(pictures - 1, places, align_corners=False) + 1
    blurred = functional.avg_pool2d(moved, 3, stride=1, padding=1, count_include_pad=False)
    chosen = (torch.rand(n, 1, 1, 1) < BLURRED_SHARE).float()
    tint = 1 + 0.2 * (2 * torch.rand(n, 3, 1, 1) - 1)
    # Ink is what differs from the white paper; the tint leaves the paper white.
    ink = (1 - torch.lerp(moved, blurred, chosen)) * tint
    # Red, green and blue change places: a kind is known by its shape in any colour.
    order = torch.rand(n, 3).argsort(dim=1)[:, :, None, None].expand_as(ink)
    recoloured = torch.rand(n, 1, 1, 1) < RECOLOURED_SHARE
    ink = torch.where(recoloured, ink.gather(1, order), ink)
    return 1 - ink + 0.08 * torch.randn_like(ink)


def train_judge(pixels: Pixels, path: Path, steps: int = STEPS) -> nn.Sequential:
    """Trains a judge that tells these pictures apart, or reads the one stored at `path`."""
    judge = new_judge(len(pixels))
    if path.exists():
        judge.load_state_dict(torch.load(path, weights_only=True))
        return judge.eval()
    pictures, dice = shrunk(as_tensor(pixels)), np.random.default_rng(0)
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(judge.parameters(), lr=RATE, weight_decay=0.01)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * max(0.02, 1 - step / steps)
        rows = torch.from_numpy(dice.integers(0, len(pixels), BATCH))
        loss = functional.cross_entropy(judge(disturbed(pictures[rows])), rows)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    torch.save(judge.state_dict(), path)
    return judge.eval()


@torch.no_grad()
def named(judge: nn.Module, pixels: Pixels, best: int = 5) -> Tensor:
    """Gives the indices `[n, best]` of the kinds it takes `[n, 128, 128, 3]` for, best first."""
    found: Tensor = judge(shrunk(as_tensor(pixels))).topk(best).indices
    return found


@torch.no_grad()
def reliability(judge: nn.Module, pixels: Pixels, kinds: list[str]) -> float:
    """Share of real pictures, disturbed anew, of which the judge names the kind."""
    torch.manual_seed(1)
    found = judge(disturbed(shrunk(as_tensor(pixels)))).argmax(dim=1).tolist()
    right: list[bool] = [kinds[index] == kind for index, kind in zip(found, kinds, strict=True)]
    return sum(right) / len(right)
