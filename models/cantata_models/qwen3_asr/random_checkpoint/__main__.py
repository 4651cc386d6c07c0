"""Write a random checkpoint (`python -m` this package)."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from cantata_models.qwen3_asr.random_checkpoint.configs import SIZES
from cantata_models.qwen3_asr.random_checkpoint.write import write_checkpoint


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen3_asr.random_checkpoint",
        description="Write random weights (tiny: 1 MB, 0.6b: 1.6 GB, 1.7b: 4.1 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    is_tiny = arguments.size == "tiny"
    print(
        write_checkpoint(
            arguments.folder,
            arguments.seed,
            size=SIZES[arguments.size],
            dtype=torch.float32 if is_tiny else torch.bfloat16,
            is_tied=not is_tiny,
        )
    )


if __name__ == "__main__":
    main()
