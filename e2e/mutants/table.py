"""The table of faults in docs/testing.md, written from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .mutant import Mutant
from .trial import Trial, Verdict

BEGIN = "<!-- mutants: written by `make mutants` -->"
END = "<!-- end of mutants -->"


def build_table(mutants: Sequence[Mutant], trials: Mapping[str, Trial], earlier: str = "") -> str:
    """In the catalogue's order. A fault that was not tried keeps its row of the earlier table."""
    kept = {row.split(" | ")[0]: row for row in earlier.splitlines()}
    rows = []
    for mutant in mutants:
        fault, trial = f"| `{mutant.name}`: {mutant.fault}", trials.get(mutant.name)
        if trial is not None:
            rows.append(f"{fault} | {_where(trial)} | {_says(trial)} |")
        else:
            rows.append(kept.get(fault, f"{fault} | not tried |  |"))
    return "\n".join(["| fault | caught by | the failure says |", "|-|-|-|", *rows])


def write_table(document: Path, mutants: Sequence[Mutant], trials: Mapping[str, Trial]) -> None:
    """Bring the table between the two marks up to date."""
    text = document.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    earlier, after = rest.split(END)
    table = build_table(mutants, trials, earlier)
    document.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def _where(trial: Trial) -> str:
    return f"`{trial.test}`" if trial.verdict is Verdict.CAUGHT else f"**{trial.verdict}**"


def _says(trial: Trial) -> str:
    plain = trial.message.replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return plain.removeprefix("AssertionError: ")
