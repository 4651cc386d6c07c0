"""Write a tiny random checkpoint (`python -m` this package)."""

from __future__ import annotations

import argparse
from pathlib import Path

from cantata_models.qwen25_omni.random_checkpoint.configs import TINY
from cantata_models.qwen25_omni.random_checkpoint.write import write_checkpoint


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen25_omni.random_checkpoint",
        description="Write a tiny checkpoint with random weights (4 MB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(write_checkpoint(arguments.folder, TINY, arguments.seed))


if __name__ == "__main__":
    main()
