"""How far `cantata say` is in its text, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cantata.contract.service import SpokenWord


def show_loading(console: Console) -> Progress:
    """A line that tells what takes so long, for as long as it does."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    is_shown = console.is_terminal
    progress = Progress(*columns, console=console, transient=True, disable=not is_shown)
    progress.add_task("loading the voice")
    return progress


class SpokenProgress:
    """A bar over the text with the time that is left. The words' times tell how far the sound is;
    a model without them shows only how much sound there is.

    Args:
        text: what is spoken.
        words: grows while the sound is made.
        console: nothing is shown where it is no terminal.
    """

    def __init__(self, text: str, words: Sequence[SpokenWord], console: Console) -> None:
        self._length, self._words = len(text), words
        self._heard = 0
        self._bar = Progress(
            TextColumn("{task.fields[made]}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, made="0 s")

    def __enter__(self) -> SpokenProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def advance(self, seconds: float) -> None:
        """So much sound has been written, or played."""
        while self._heard < len(self._words) and self._words[self._heard].start_s <= seconds:
            self._heard += 1
        changes: dict[str, Any] = {"made": f"{seconds:.0f} s"}
        if self._heard:
            changes |= {"completed": self._words[self._heard - 1].text_end, "total": self._length}
        self._bar.update(self._task, **changes)
