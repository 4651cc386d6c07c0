"""The table of faults in docs/testing.md, written from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .mutant import Mutant
from .trial import Trial, Verdict

BEGIN = "<!-- mutants: written by `make mutants` -->"
END = "<!-- end of mutants -->"


def table_of(mutants: Sequence[Mutant], trials: Mapping[str, Trial]) -> str:
    """In the catalogue's order."""
    rows = []
    for mutant in mutants:
        trial = trials.get(mutant.name)
        cells = ("not tried", "") if trial is None else (_where(trial), _says(trial))
        rows.append(f"| `{mutant.name}`: {mutant.fault} | {cells[0]} | {cells[1]} |")
    return "\n".join(["| fault | caught by | the failure says |", "|-|-|-|", *rows])


def write_table(document: Path, table: str) -> None:
    """Replace the table between the two marks."""
    text = document.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    document.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def _where(trial: Trial) -> str:
    return f"`{trial.test}`" if trial.verdict is Verdict.CAUGHT else f"**{trial.verdict}**"


def _says(trial: Trial) -> str:
    plain = trial.message.replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return plain.removeprefix("AssertionError: ")
