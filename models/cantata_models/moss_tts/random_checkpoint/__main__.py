"""Write a random checkpoint of a published size (`python -m` this package).

It generates noise as fast as the real checkpoint generates speech: speed depends on shapes, not on
values.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cantata_models.moss_tts.random_checkpoint.write import (
    write_published_local,
    write_published_nano,
    write_reduced_nano,
)

WRITERS = {
    "local": write_published_local,
    "nano": write_published_nano,
    "nano-reduced": write_reduced_nano,
}


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.moss_tts.random_checkpoint",
        description="Write a checkpoint with random weights (nano: 0.3 GB, local: 18 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", choices=sorted(WRITERS), default="nano")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(WRITERS[arguments.model](arguments.folder, arguments.seed))


if __name__ == "__main__":
    main()
