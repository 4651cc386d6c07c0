"""Runs one part of the benchmark in a process of its own; `cli.py` starts it.

Rows go to a file as they are measured, so they survive any end of the process.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from gpu import timing
from gpu.serve import Skipped

PARTS = (
    *("env", "codec", "predictor", "step", "profile", "moss_codec", "moss_frames", "patches"),
    *("serve", "open_loop"),
)
SERVER_PARTS = ("serve", "open_loop")
"""Parts that depend on the talker's engine."""
OWN_PARTS = ("env", "moss_codec", "moss_frames", "patches")
"""Parts that need no weights or make their own; the others use Qwen3-TTS's checkpoint."""
SKIPPED = 3
"""Exit code; the last line on standard error says why."""


def main() -> None:
    """Measure one part."""
    parser = argparse.ArgumentParser(prog="python -m gpu.part", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("rows", type=Path, help="file for the rows, one JSON object per line")
    parser.add_argument("--device", required=True)
    parser.add_argument(
        "--tiny", action="store_true", help="measure few shapes, of a tiny checkpoint"
    )
    parser.add_argument("--engine", default="vllm", help="of the server's talker")
    arguments = parser.parse_args()
    part = importlib.import_module(f"gpu.{arguments.part}")
    device = torch.device(arguments.device)
    if arguments.tiny:
        timing.BUDGET_S = timing.TINY_BUDGET_S
    settings = [arguments.checkpoint, device, arguments.tiny]
    if arguments.part in SERVER_PARTS:
        settings.append(arguments.engine)
    try:
        with arguments.rows.open("w", encoding="utf-8") as file:
            for row in part.measure(*settings):
                line = json.dumps(asdict(row))
                print(line, file=file, flush=True)
                print(line, flush=True)
    except Skipped as reason:
        print(reason, file=sys.stderr)
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
