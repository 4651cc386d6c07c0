"""How far `cantata say` and `cantata book` are, on a terminal."""

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
from cantata.jobs.job import Job, JobStatus
from cantata.jobs.store import JobStore


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
        """Show that this much sound has been written or played."""
        while self._heard < len(self._words) and self._words[self._heard].start_s <= seconds:
            self._heard += 1
        changes: dict[str, Any] = {"made": f"{seconds:.0f} s"}
        if self._heard:
            changes |= {"completed": self._words[self._heard - 1].text_end, "total": self._length}
        self._bar.update(self._task, **changes)


async def follow_book(store: JobStore, job: Job, console: Console) -> None:
    """Show a bar over a job's sentences until it is cancelled; nothing where it is no terminal."""
    if not console.is_terminal:
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=job.sentences, completed=job.spoken)
        while True:
            seen = store.changes
            job = await store.find(job.id)
            text = _describe(job)
            bar.update(task, completed=job.spoken, description=text)
            await store.wait(seen)


def _describe(job: Job) -> str:
    if job.status is JobStatus.WRITING:
        return "writing"
    chapter = next((one for one in job.chapters if one.spoken < one.sentences), job.chapters[-1])
    title = chapter.title[:30] or f"chapter {chapter.number + 1}"
    return f"{title}  {job.seconds / 60:.0f} min"
