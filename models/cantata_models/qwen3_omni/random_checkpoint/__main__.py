"""Write a random checkpoint (`python -m` this package)."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from cantata_models.qwen3_omni.random_checkpoint.shapes import SIZES
from cantata_models.qwen3_omni.random_checkpoint.write import write_checkpoint


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen3_omni.random_checkpoint",
        description="Write a checkpoint with random weights (tiny: 3 MB, reduced: 0.2 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="reduced")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--silent", action="store_true", help="without talker and code2wav")
    arguments = parser.parse_args()
    dtype = torch.float32 if arguments.size == "tiny" else torch.bfloat16
    shape = SIZES[arguments.size]
    folder = write_checkpoint(
        arguments.folder, shape, arguments.seed, dtype, speaks=not arguments.silent
    )
    print(folder)


if __name__ == "__main__":
    main()
