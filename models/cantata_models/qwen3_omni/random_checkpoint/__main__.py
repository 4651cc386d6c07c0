"""Write a random checkpoint (`python -m` this package)."""

from __future__ import annotations

import argparse
import json
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
    parser.add_argument("--silent", action="store_true", help="leave out talker and code2wav")
    parser.add_argument(
        "--frames", type=int, help="most frames of an answer; few end by themselves"
    )
    arguments = parser.parse_args()
    dtype = torch.float32 if arguments.size == "tiny" else torch.bfloat16
    shape = SIZES[arguments.size]
    folder = write_checkpoint(
        arguments.folder, shape, arguments.seed, dtype, speaks=not arguments.silent
    )
    if arguments.frames is not None:
        path = folder / "generation_config.json"
        generation = json.loads(path.read_text(encoding="utf-8"))
        # The reference's last step of so many makes no frame.
        generation["talker_max_new_tokens"] = arguments.frames + 1
        path.write_text(json.dumps(generation, indent=2), encoding="utf-8")
    print(folder)


if __name__ == "__main__":
    main()
