"""The first run on a borrowed card: `python benchmarks/gpu/first_run.py --out FOLDER`.

The command of `run.py` with what fits into half an hour, in the order of its worth: `--limit` for
each part, `--total` for the call. Call it again with other `--parts` and the same `--checkpoint`:
that is written once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

PARTS = ("env", "predictor", "step", "codec", "profile", "open_loop")
ENGINE = "graphs"
"""Of the server's talker: it needs no vLLM."""
LIMIT_S, TOTAL_S = 240, 570
"""Of a part, and of a call: a machine that is lent often takes ten minutes a command."""


def with_defaults(arguments: Sequence[str]) -> list[str]:
    """The command's arguments; those that are given take precedence."""
    defaults = ["--parts", ",".join(PARTS), "--limit", str(LIMIT_S), "--total", str(TOTAL_S)]
    return [*defaults, "--engine", ENGINE, *arguments]


if __name__ == "__main__":
    # The checkout's packages, installed or not, in place of this folder.
    root = Path(__file__).resolve().parents[2]
    sys.path[:1] = [str(root / name) for name in ("backend", "models", "benchmarks")]
    from gpu.cli import main

    sys.exit(main(with_defaults(sys.argv[1:])))
