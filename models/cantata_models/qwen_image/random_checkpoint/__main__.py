"""Write a random checkpoint (`python -m` this package)."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from cantata_models.qwen_image.random_checkpoint.shapes import SIZES, VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen_image.random_checkpoint",
        description="Write a checkpoint with random weights (published: 56 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--variant", choices=sorted(VARIANTS), default="image")
    parser.add_argument("--size", choices=sorted(SIZES), default="small")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    dtype = torch.float32 if arguments.size == "tiny" else torch.bfloat16
    variant, shape = VARIANTS[arguments.variant], SIZES[arguments.size]
    print(write_checkpoint(arguments.folder, variant, arguments.seed, shape, dtype))


if __name__ == "__main__":
    main()
