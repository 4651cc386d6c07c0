"""Write a random checkpoint of a published size, or nearly so (`python -m` this package).

It generates noise as fast as the real checkpoint generates speech: speed depends on shapes, not on
values.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from cantata_models.qwen3_tts.random_checkpoint.configs import KINDS, SIZES
from cantata_models.qwen3_tts.random_checkpoint.write import write_checkpoint


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen3_tts.random_checkpoint",
        description="Write a checkpoint with random weights (0.6b: 2.5 GB, 1.7b: 4.5 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="0.6b")
    parser.add_argument("--kind", choices=KINDS, default="custom_voice")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    shape = SIZES[arguments.size]
    write_checkpoint(arguments.folder, shape, arguments.kind, arguments.seed, torch.bfloat16)
    print(arguments.folder)


if __name__ == "__main__":
    main()
