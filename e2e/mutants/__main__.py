"""Put every fault into a scratch checkout, one at a time, and run the tests that must catch it.

    python -m e2e.mutants [--only NAME ...] [--again] [--publish]

Results are kept in artifacts/mutants.json, so an interrupted run resumes where it stopped. The
command fails if a fault survives.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .catalogue import MUTANTS
from .mutant import Mutant
from .table import write_table
from .trial import Trial, Verdict, scratch_checkout, try_out

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "artifacts" / "mutants.json"
DOCUMENT = ROOT / "docs" / "testing.md"


def main() -> int:
    """Returns the exit status: the number of faults that were not caught, at most 1."""
    parser = argparse.ArgumentParser(prog="e2e.mutants", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[m.name for m in MUTANTS],
        metavar="NAME",
        help="inject only these faults",
    )
    parser.add_argument(
        "--again", action="store_true", help="also try the faults that were caught before"
    )
    parser.add_argument(
        "--publish", action="store_true", help="update the table in docs/testing.md"
    )
    given = parser.parse_args()
    chosen = [m for m in MUTANTS if given.only is None or m.name in given.only]
    trials = {} if given.again else read_results()
    run_all([m for m in chosen if given.only or _is_open(m, trials)], trials)
    if given.publish:
        write_table(DOCUMENT, MUTANTS, trials)
    escaped = [m.name for m in chosen if trials[m.name].verdict is not Verdict.CAUGHT]
    for name in escaped:
        print(f"{name}: {trials[name].verdict} {trials[name].message}")
    print(f"{len(chosen) - len(escaped)} of {len(chosen)} faults caught")
    return min(1, len(escaped))


def run_all(mutants: Sequence[Mutant], trials: dict[str, Trial]) -> None:
    """Each result is kept at once."""
    if not mutants:
        return
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        scratch_checkout(ROOT, Path(folder) / "checkout") as checkout,
    ):
        for number, mutant in enumerate(mutants, 1):
            trial = try_out(mutant, checkout)
            trials[mutant.name] = trial
            keep(trials)
            where = f"{trial.test} {trial.message}".strip()
            print(f"{number}/{len(mutants)} {mutant.name}: {trial.verdict} {where}", flush=True)


def read_results() -> dict[str, Trial]:
    """Those of earlier runs."""
    if not RESULTS.exists():
        return {}
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {one["name"]: Trial(**one | {"verdict": Verdict(one["verdict"])}) for one in kept}


def keep(trials: dict[str, Trial]) -> None:
    """Write the results so far."""
    RESULTS.parent.mkdir(exist_ok=True)
    rows = [trial.as_json() for trial in trials.values()]
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _is_open(mutant: Mutant, trials: dict[str, Trial]) -> bool:
    return mutant.name not in trials or trials[mutant.name].verdict is not Verdict.CAUGHT


if __name__ == "__main__":
    sys.exit(main())
