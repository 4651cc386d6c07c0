"""Write a random checkpoint (`python -m` this package)."""

from __future__ import annotations

import argparse
from pathlib import Path

from cantata_models.bagel.random_checkpoint.shapes import SIZES
from cantata_models.bagel.random_checkpoint.write import write_checkpoint


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.bagel.random_checkpoint",
        description="Write a checkpoint with random weights (tiny: 4 MB, reduced: 0.3 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="reduced")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(write_checkpoint(arguments.folder, arguments.seed, SIZES[arguments.size]))


if __name__ == "__main__":
    main()
