"""Jobs on disk: what is kept, what is made again, limits, and other programs."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cantata.contract.data.errors import (
    JobEnded,
    JobNotFound,
    JobsFull,
    JobsLocked,
    NotStored,
    StorageFailed,
)
from cantata.contract.service import SpokenWord
from cantata.jobs.database import FILE
from cantata.jobs.job import (
    Job,
    JobFile,
    JobLimits,
    JobSentence,
    JobStatus,
    NewJob,
    SoundShape,
    SpokenSentence,
)
from cantata.jobs.rows import select_words
from cantata.jobs.store import JobStopped, JobStore

SHAPE = SoundShape(1_000, 2)
SENTENCES = (
    JobSentence(0, 0, "One.", begins=True),
    JobSentence(1, 0, "Two.", pause_s=0.01),
    JobSentence(2, 1, "Three.", "ann", begins=True),
)
NEW = NewJob("", {"model": "m"}, SHAPE, "Title", "", "en", ("A", "B"), SENTENCES, b"cover")


def spoken(value: int, length: int = 5) -> SpokenSentence:
    samples = np.full((length, 2), value, np.int16)
    return SpokenSentence(samples, (SpokenWord(0, 3, 0.0, 0.005),))


async def keep(store: JobStore, job: Job, *numbers: int) -> None:
    for number in numbers:
        await store.keep_sound(job.id, SHAPE, SENTENCES[number], spoken(number + 1))


async def test_a_restart_goes_on_behind_the_last_sentence(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs", JobLimits())
    assert not store.exists
    job = await store.add(NEW)
    assert (job.status, job.title, job.sentences) == (JobStatus.QUEUED, "Title", 3)
    await keep(store, job, 0)
    await store.close()
    # The process ended in the middle of a sentence.
    with store.find_sound(job.id, 0).open("ab") as file:
        file.write(b"cut off")

    later = JobStore(tmp_path / "jobs", JobLimits())
    assert later.exists
    assert await later.list_open() == [job.id]
    assert await later.list_unspoken(job.id, 9) == [*SENTENCES[1:]]
    await keep(later, job, 1, 2)
    sound = np.frombuffer(later.find_sound(job.id, 0).read_bytes(), "<i2").reshape(-1, 2)
    assert sound[:, 0].tolist() == [*[1] * 5, *[0] * 10, *[2] * 5]
    found = await later.find(job.id)
    assert [(one.title, one.spoken, one.samples) for one in found.chapters] == [
        ("A", 2, 20),
        ("B", 1, 5),
    ]
    assert found.seconds == 0.025
    words = await later.database.run(lambda db: select_words(db, job.id, 0))
    assert words[1] == ("Two.", 15, (SpokenWord(0, 3, 0.01, 0.015),))
    assert (later.find_folder(job.id) / "cover").read_bytes() == b"cover"
    await later.close()


async def test_events_are_numbered_and_a_job_ends_once(tmp_path: Path) -> None:
    store = JobStore(tmp_path, JobLimits(expires_s=10.0), clock := Ticking())
    job = await store.add(NEW)
    await store.set_status(job.id, JobStatus.SPEAKING)
    await keep(store, job, 0, 1, 2)
    await store.end(job.id, JobStatus.COMPLETED, (JobFile("01.mp3", "audio/mpeg", 3),))
    events = await store.list_events(job.id, 0)
    assert [one.id for one in events] == [1, 2, 3, 4, 5, 6]
    assert [one.id for one in await store.list_events(job.id, 4)] == [5, 6]
    assert '"spoken": 3' in events[4].data
    assert not store.find_sound(job.id, 0).exists()
    ended = await store.find(job.id)
    assert (ended.status, ended.files[0].name) == (JobStatus.COMPLETED, "01.mp3")
    with pytest.raises(JobStopped):
        await store.end(job.id, JobStatus.FAILED)
    with pytest.raises(JobEnded, match="completed"):
        await store.cancel(job.id, "")
    assert await store.delete_expired() == 0
    clock.now += 10
    assert await store.delete_expired() == 1
    assert not store.find_folder(job.id).exists()
    assert await store.list_all("") == []
    await store.close()


async def test_what_is_cancelled_or_deleted_takes_no_more_sound(tmp_path: Path) -> None:
    store = JobStore(tmp_path, JobLimits())
    first, second = await store.add(NEW), await store.add(NEW)
    assert (await store.cancel(first.id, "")).status is JobStatus.CANCELLED
    await store.delete(second.id, "")
    for job in (first, second):
        with pytest.raises(JobStopped):
            await keep(store, job, 0)
        with pytest.raises(JobStopped):
            await store.set_status(job.id, JobStatus.SPEAKING)
    assert await store.list_open() == []
    await store.close()


async def test_clients_see_their_own_jobs_and_have_a_limit(tmp_path: Path) -> None:
    store = JobStore(tmp_path, JobLimits(per_owner=1, max_bytes=10_000))
    job = await store.add(replace(NEW, owner="a"))
    with pytest.raises(JobNotFound):
        await store.find(job.id, "b")
    with pytest.raises(JobNotFound):
        await store.delete(job.id, "b")
    assert await store.list_all("b") == []
    with pytest.raises(JobsFull, match="1 jobs"):
        await store.add(replace(NEW, owner="a"))
    with pytest.raises(JobsFull, match="MiB"):
        await store.add(replace(NEW, owner="b", cover=b" " * 10_000))
    await store.add(replace(NEW, owner="b"))
    await store.close()


async def test_one_program_at_a_time_has_a_folder(tmp_path: Path) -> None:
    first, second = JobStore(tmp_path, JobLimits()), JobStore(tmp_path, JobLimits())
    await first.add(NEW)
    with pytest.raises(JobsLocked, match="--jobs-dir"):
        await second.add(NEW)
    await first.close()
    assert len(await second.list_all("")) == 1
    await second.close()


async def test_a_disk_that_takes_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = JobStore(tmp_path / "file" / "jobs", JobLimits())
    with pytest.raises(NotStored):
        await store.add(NEW)
    await store.close()

    full = JobStore(tmp_path / "full", JobLimits())
    job = await full.add(NEW)
    full.find_sound(job.id, 0).symlink_to("/dev/full")
    with pytest.raises(NotStored, match=r"[Nn]o space|[Ii]nvalid"):
        await keep(full, job, 0)
    assert (await full.find(job.id)).spoken == 0
    await full.close()


async def test_a_damaged_or_newer_file_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    store = JobStore(tmp_path, JobLimits())
    with pytest.raises(StorageFailed, match="damaged"):
        await store.list_all("")
    await store.close()
    (tmp_path / FILE).unlink()
    newer = sqlite3.connect(tmp_path / FILE)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    store = JobStore(tmp_path, JobLimits())
    with pytest.raises(StorageFailed, match="another version"):
        await store.list_all("")
    await store.close()


class Ticking:
    """A clock that is set."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now
