"""Starts the benchmark from a checkout: `python benchmarks/gpu/run.py --help`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # The checkout's packages, installed or not, in place of this folder.
    root = Path(__file__).resolve().parents[2]
    sys.path[:1] = [str(root / name) for name in ("backend", "models", "benchmarks")]
    from gpu.cli import main

    sys.exit(main())
