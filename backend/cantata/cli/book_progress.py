"""How far `cantata book` is, on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cantata.jobs.job import Job, JobStatus
from cantata.jobs.store import JobStore


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
