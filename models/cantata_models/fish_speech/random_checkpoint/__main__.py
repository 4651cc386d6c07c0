"""Write a random checkpoint, of the published size or a smaller one (`python -m` this package).

It generates noise as fast as the real checkpoint generates speech: speed depends on shapes, not on
values.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from cantata_models.fish_speech.random_checkpoint.shapes import (
    PUBLISHED_S2,
    REDUCED_S2,
    TINY_S1,
    TINY_S2,
)
from cantata_models.fish_speech.random_checkpoint.write import write_checkpoint

SHAPES = {"s2": PUBLISHED_S2, "reduced-s2": REDUCED_S2, "tiny-s2": TINY_S2, "tiny-s1": TINY_S1}


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.fish_speech.random_checkpoint",
        description="Write a checkpoint with random weights (s2: 11 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SHAPES), default="s2")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    shape = SHAPES[arguments.size]
    print(write_checkpoint(arguments.folder, shape, arguments.seed, torch.bfloat16))


if __name__ == "__main__":
    main()
