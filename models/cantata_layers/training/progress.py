"""Progress bars for the stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


def new_bar() -> Progress:
    """Returns a bar with a description, a count and the time left. It is quiet in a log file."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=2,
    )


def tracked(items: Iterable[T], total: int, description: str) -> Iterator[T]:
    """Yields the items and shows how many of `total` are done."""
    with new_bar() as bar:
        task = bar.add_task(description, total=total)
        for item in items:
            yield item
            bar.advance(task)
