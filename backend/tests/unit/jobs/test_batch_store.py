"""Files and batches on disk: what is kept, what is made again, limits, and when they end."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from cantata.contract.data.errors import (
    BatchEnded,
    BatchNotFound,
    FileInUse,
    FileNotKept,
    InvalidRequest,
    JobsFull,
    NotStored,
)
from cantata.jobs.batch import (
    BatchLine,
    BatchStatus,
    FilePurpose,
    KeptBatch,
    KeptFile,
    LineAnswer,
    NewBatch,
)
from cantata.jobs.batches import WINDOW_S, BatchStore
from cantata.jobs.database import FILE
from cantata.jobs.files import FileStore
from cantata.jobs.job import JobLimits
from cantata.jobs.records import ListPage
from cantata.jobs.store import JobStopped, JobStore

LIMITS = JobLimits(per_owner=2, files_per_owner=4, max_bytes=10_000, expires_s=2 * WINDOW_S)
LINES = [BatchLine(number, f"c{number}", 0, 1) for number in (1, 2, 3)]
GOOD, BAD = LineAnswer(200, "req_1", b'{"a": 1}'), LineAnswer(400, "req_2", b'{"error": {}}')
NEWEST = ListPage(10)


class Stores:
    """All stores of a folder, with a clock that is set."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_000.0
        self.jobs = JobStore(folder, LIMITS, lambda: self.now)
        self.files = FileStore(self.jobs)
        self.batches = BatchStore(self.jobs, self.files)

    async def upload(self, purpose: FilePurpose = FilePurpose.BATCH, owner: str = "") -> KeptFile:
        return await self.files.add(owner, purpose, "in.jsonl", io.BytesIO(b"Hello."))

    async def begin(self) -> KeptBatch:
        file = await self.upload()
        batch = await self.batches.add(NewBatch("", "/v1/audio/speech", file.id, {"a": "b"}, None))
        await self.batches.begin(batch.id, LINES)
        return batch

    def find_answers(self, custom_id: str) -> list[Path]:
        """The files that have a line of this id."""
        files = (self.jobs.folder / "files").iterdir()
        return [one for one in files if f'"custom_id": "{custom_id}"' in one.read_text()]

    def read(self, id: str | None) -> list[dict[str, object]]:
        assert id is not None
        return [json.loads(one) for one in self.files.find_path(id).read_text().splitlines()]


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    stores = Stores(tmp_path / "jobs")
    yield stores
    await stores.jobs.close()


async def test_a_file_is_kept_listed_and_deleted(stores: Stores) -> None:
    first, second = await stores.upload(), await stores.upload(FilePurpose.USER_DATA)
    assert stores.files.find_path(first.id).read_bytes() == b"Hello."
    assert stores.files.find_path(first.id).stat().st_mode & 0o777 == 0o600
    assert await stores.files.list_page("", NEWEST) == ([second, first], False)
    assert await stores.files.list_page("", ListPage(1)) == ([second], True)
    assert await stores.files.list_page("", ListPage(1, second.id)) == ([first], False)
    assert await stores.files.list_page("", ListPage(1, newest_first=False)) == ([first], True)
    assert await stores.files.list_page("", NEWEST, "batch") == ([first], False)
    with pytest.raises(FileNotKept):
        await stores.files.list_page("", ListPage(1, "file-none"))
    await stores.files.delete(first.id, "")
    assert not stores.files.find_path(first.id).exists()
    with pytest.raises(FileNotKept):
        await stores.files.find(first.id, "")


async def test_clients_see_their_own_and_have_a_limit(stores: Stores) -> None:
    file = await stores.upload(owner="a")
    for refused in (stores.files.find(file.id, "b"), stores.files.delete(file.id, "b")):
        with pytest.raises(FileNotKept):
            await refused
    assert await stores.files.list_page("b", NEWEST) == ([], False)
    new = NewBatch("a", "/v1/audio/speech", file.id, None, None)
    with pytest.raises(FileNotKept) as foreign:
        await stores.batches.add(replace(new, owner="b"))
    assert foreign.value.param == "input_file_id"
    batch = await stores.batches.add(new)
    with pytest.raises(BatchNotFound):
        await stores.batches.find(batch.id, "b")
    with pytest.raises(BatchNotFound):
        await stores.batches.cancel(batch.id, "b")
    await stores.batches.add(new)
    with pytest.raises(JobsFull, match="2 batches"):
        await stores.batches.add(new)
    source = io.BytesIO(b" " * 10_000)
    with pytest.raises(JobsFull, match="MiB"):
        await stores.files.add("a", FilePurpose.BATCH, "large", source)
    for _ in range(3):
        await stores.upload(owner="a")
    with pytest.raises(JobsFull, match="4 files"):
        await stores.upload(owner="a")
    assert sorted(one.name for one in (stores.jobs.folder / "files").iterdir()) == sorted(
        one.id for one in (await stores.files.list_page("a", NEWEST))[0]
    )


async def test_batches_are_listed_page_by_page(stores: Stores) -> None:
    file = await stores.upload()
    new = NewBatch("", "/v1/audio/speech", file.id, None, None)
    first, second = await stores.batches.add(new), await stores.batches.add(new)
    assert await stores.batches.list_page("", ListPage(1)) == ([second], True)
    assert await stores.batches.list_page("", ListPage(1, second.id)) == ([first], False)
    oldest = ListPage(1, first.id, newest_first=False)
    assert await stores.batches.list_page("", oldest) == ([second], False)
    with pytest.raises(BatchNotFound):
        await stores.batches.list_page("", ListPage(1, "batch_none"))


async def test_only_files_of_requests_become_batches(stores: Stores) -> None:
    file = await stores.upload(FilePurpose.USER_DATA)
    with pytest.raises(InvalidRequest, match="user_data"):
        await stores.batches.add(NewBatch("", "/v1/audio/speech", file.id, None, None))


async def test_a_restart_goes_on_behind_the_answered_lines(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    batch = await stores.begin()
    assert (await stores.batches.find(batch.id)).status is BatchStatus.IN_PROGRESS
    await stores.batches.keep_answer(batch.id, LINES[1], GOOD)
    await stores.batches.keep_answer(batch.id, LINES[0], BAD)
    assert (await stores.batches.find(batch.id)).output_file is None
    await stores.jobs.close()
    # The process ended in the middle of a line.
    (output,) = stores.find_answers("c2")
    kept = output.read_bytes()
    with output.open("ab") as file:
        file.write(b"cut off")

    later = Stores(tmp_path)
    assert await later.batches.list_open() == [batch.id]
    assert await later.batches.list_unanswered(batch.id, 0, 9) == [LINES[2]]
    await later.batches.keep_answer(batch.id, LINES[2], GOOD)
    await later.batches.set_finalizing(batch.id)
    await later.batches.end(batch.id, BatchStatus.COMPLETED)
    done = await later.batches.find(batch.id)
    assert (done.total, done.completed, done.failed) == (3, 2, 1)
    assert list(done.times) == ["in_progress", "finalizing", "completed"]
    assert output.read_bytes().startswith(kept)
    lines = later.read(done.output_file)
    assert [one["custom_id"] for one in lines] == ["c2", "c3"]
    answer = {"status_code": 200, "request_id": "req_1", "body": {"a": 1}}
    assert (lines[0]["response"], lines[0]["error"]) == (answer, None)
    (failed,) = later.read(done.error_file)
    assert failed["custom_id"] == "c1"
    files, _ = await later.files.list_page("", NEWEST, "batch_output")
    assert {one.id for one in files} == {done.output_file, done.error_file}
    await later.jobs.close()


@pytest.mark.parametrize(
    ("status", "code"),
    [(BatchStatus.CANCELLED, "batch_cancelled"), (BatchStatus.EXPIRED, "batch_expired")],
)
async def test_what_is_cut_off_has_its_answers_and_names_the_rest(
    stores: Stores, status: BatchStatus, code: str
) -> None:
    batch = await stores.begin()
    await stores.batches.keep_answer(batch.id, LINES[0], GOOD)
    (output,) = stores.find_answers("c1")
    with output.open("ab") as file:
        file.write(b"cut off")
    await stores.batches.end(batch.id, status)
    done = await stores.batches.find(batch.id)
    assert (done.status, done.total, done.completed, done.failed) == (status, 3, 1, 0)
    assert [one["custom_id"] for one in stores.read(done.output_file)] == ["c1"]
    rest = stores.read(done.error_file)
    assert [(one["custom_id"], one["response"]) for one in rest] == [("c2", None), ("c3", None)]
    assert isinstance(rest[0]["error"], dict)
    assert rest[0]["error"]["code"] == code


async def test_a_cancelled_batch_takes_no_more_answers(stores: Stores) -> None:
    batch = await stores.begin()
    assert (await stores.batches.cancel(batch.id, "")).status is BatchStatus.CANCELLING
    again = await stores.batches.cancel(batch.id, "")
    assert again.status is BatchStatus.CANCELLING
    for late in (
        stores.batches.keep_answer(batch.id, LINES[0], GOOD),
        stores.batches.set_finalizing(batch.id),
        stores.batches.begin(batch.id, LINES),
    ):
        with pytest.raises(JobStopped):
            await late
    await stores.batches.end(batch.id, BatchStatus.CANCELLED)
    with pytest.raises(BatchEnded, match="cancelled"):
        await stores.batches.cancel(batch.id, "")


async def test_times_come_and_files_that_are_read_stay(stores: Stores) -> None:
    batch = await stores.begin()
    brief = await stores.files.add("", FilePurpose.USER_DATA, "a", io.BytesIO(b"a"), 3_600)
    left = stores.files.find_path("file-x.part")
    left.write_bytes(b"cut off")
    stores.now += 3_600
    await stores.files.delete_expired()
    with pytest.raises(FileNotKept):
        await stores.files.find(brief.id, "")
    with pytest.raises(FileInUse, match=batch.id):
        await stores.files.delete(batch.input_file, "")
    stores.now = left.stat().st_mtime + 2 * WINDOW_S
    await stores.files.delete_expired()
    assert not left.exists()
    await stores.files.find(batch.input_file, "")
    await stores.batches.end(batch.id, BatchStatus.EXPIRED)
    await stores.files.delete_expired()
    with pytest.raises(FileNotKept):
        await stores.files.find(batch.input_file, "")
    stores.now += LIMITS.expires_s
    await stores.files.delete_expired()
    await stores.batches.delete_expired()
    assert await stores.batches.list_page("", NEWEST) == ([], False)
    assert list((stores.jobs.folder / "files").iterdir()) == []


async def test_a_full_disk_and_a_full_store_are_named(stores: Stores) -> None:
    batch = await stores.begin()
    large = replace(GOOD, body=b'"' + b"x" * 10_000 + b'"')
    with pytest.raises(NotStored, match="MiB"):
        await stores.batches.keep_answer(batch.id, LINES[0], large)
    assert (await stores.batches.find(batch.id)).completed == 0
    await stores.batches.keep_answer(batch.id, LINES[0], GOOD)
    folder = stores.jobs.folder / "files"
    (output,) = (one for one in folder.iterdir() if one.name != batch.input_file)
    output.unlink()
    output.symlink_to("/dev/full")
    with pytest.raises(NotStored, match=r"[Nn]o space|[Ii]nvalid"):
        await stores.batches.keep_answer(batch.id, LINES[1], GOOD)
    assert (await stores.batches.find(batch.id)).completed == 1


async def test_a_folder_of_an_earlier_version_takes_batches(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    await stores.jobs.list_all("")
    await stores.jobs.close()
    with sqlite3.connect(tmp_path / FILE) as older:
        older.executescript(
            "DROP TABLE batch_lines; DROP TABLE batches; DROP TABLE stored_files;"
            "ALTER TABLE sentences DROP COLUMN words_verified;"
            "ALTER TABLE sentences DROP COLUMN words_missing;"
            "ALTER TABLE sentences DROP COLUMN words_extra;"
            "PRAGMA user_version = 1;"
        )
    older.close()
    later = Stores(tmp_path)
    batch = await later.begin()
    assert (await later.batches.list_page("", NEWEST))[0][0].id == batch.id
    await later.jobs.close()
