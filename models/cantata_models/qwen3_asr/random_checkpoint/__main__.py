"""Write a tiny random checkpoint (`python -m` this package)."""

from __future__ import annotations

import argparse
from pathlib import Path

from cantata_models.qwen3_asr.random_checkpoint.write import write_checkpoint


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen3_asr.random_checkpoint",
        description="Write a checkpoint with random weights (1 MB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(write_checkpoint(arguments.folder, arguments.seed))


if __name__ == "__main__":
    main()
