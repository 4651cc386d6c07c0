"""One fault as a change of one place in one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class Unfit(ValueError):
    """The code has changed: the fault has no place, or several."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault and the cheapest tests that must catch it."""

    name: str
    fault: str
    """Description of the fault in the table."""
    file: str
    """Relative to the repository."""
    old: str
    """Occurs once in the file."""
    new: str
    tests: tuple[str, ...]
    """pytest's node ids."""

    def applied_to(self, text: str) -> str:
        """The file's text with the fault.

        Raises:
            Unfit: the place is not there exactly once.
        """
        found = text.count(self.old)
        if found != 1:
            raise Unfit(f"{self.name}: {self.file} has its place {found} times, not once")
        return text.replace(self.old, self.new)

    def apply(self, root: Path) -> None:
        """Write the fault into a checkout."""
        file = root / self.file
        file.write_text(self.applied_to(file.read_text(encoding="utf-8")), encoding="utf-8")
