"""Write a random checkpoint of the published size (`python -m` this package).

It generates noise as fast as the real checkpoint generates speech: speed depends on shapes, not on
values.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cantata_models.pocket_tts.random_checkpoint.configs import SHAPES
from cantata_models.pocket_tts.random_checkpoint.write import write_checkpoint


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.pocket_tts.random_checkpoint",
        description="Write a checkpoint with random weights (100m: 0.5 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SHAPES), default="100m")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write_checkpoint(arguments.folder, SHAPES[arguments.size], arguments.seed)
    print(arguments.folder)


if __name__ == "__main__":
    main()
