"""The files of a job: what a player finds in an audiobook, and captions in its time."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import av
import msgspec
import numpy as np
import psutil
import pytest
from PIL import Image

from cantata.contract.data.errors import InvalidRequest, NotStored, RequestFailed
from cantata.contract.service import SpokenWord
from cantata.jobs.audiobook import CHAPTER_GAP_S
from cantata.jobs.job import Job, JobLimits, JobSentence, NewJob, SoundShape, SpokenSentence
from cantata.jobs.results import ResultOptions, check_results, write_results
from cantata.jobs.store import JobStore
from cantata.jobs.writing import make_name
from cantata.media.certificates import write_trial_certificate
from cantata.media.provenance import MADE_BY_A_MODEL, find_provenance, make_sound_tags
from cantata.media.signing import FileSigner, SigningFiles
from process_tree import find_descendants

RATE = 16_000
SENTENCES = (
    JobSentence(0, 0, "The sea."),
    JobSentence(1, 0, "Far away.", pause_s=0.5),
    JobSentence(2, 1, "The sky."),
)


def draw_cover() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), (10, 20, 200)).save(file, "JPEG")
    return file.getvalue()


async def make_job(folder: Path, channels: int = 1) -> tuple[JobStore, Job]:
    """A book of two chapters, a second of tone for each sentence."""
    store, shape = JobStore(folder, JobLimits()), SoundShape(RATE, channels)
    new = NewJob("", {}, shape, "B\u00f6ok!", "Ann", "en", ("Sea", ""), SENTENCES, draw_cover())
    job = await store.add(new)
    tone = np.sin(np.arange(RATE) / 10)[:, None].repeat(channels, 1) * 9_000
    for sentence in SENTENCES:
        words = (SpokenWord(0, 3, 0.25, 0.5),) if sentence.number < 2 else ()
        spoken = SpokenSentence(tone.astype(np.int16), words)
        await store.keep_sound(job.id, shape, sentence, spoken)
    return store, await store.find(job.id)


@pytest.mark.parametrize("channels", [1, 2])
async def test_a_player_finds_chapters_and_cover(tmp_path: Path, channels: int) -> None:
    store, job = await make_job(tmp_path, channels)
    tags = (("comment", "made"),)
    (file,) = await write_results(store, job, ResultOptions("m4b", tags=tags))
    assert (file.name, file.media_type) == ("book.m4b", "audio/mp4")
    path = store.find_results(job.id) / file.name
    assert path.stat().st_size == file.size
    assert path.read_bytes()[8:12] == b"M4B "
    with av.open(str(path)) as book:
        told = {key: book.metadata[key] for key in ("title", "artist", "comment", "genre")}
        assert told == {
            "title": "B\u00f6ok!",
            "artist": "Ann",
            "comment": "made",
            "genre": "Audiobook",
        }
        chapters = [
            (one["metadata"]["title"], one["start"] * one["time_base"])
            for one in book.chapters()
            if one["time_base"]
        ]
        assert chapters == [("Sea", 0), ("Chapter 2", pytest.approx(2.5 + CHAPTER_GAP_S))]
        picture = next(iter(book.decode(video=0)))
        assert (picture.width, picture.height) == (64, 64)
    with av.open(str(path)) as book:
        length = sum(frame.samples for frame in book.decode(audio=0))
        assert length / RATE == pytest.approx(3.5 + 2 * CHAPTER_GAP_S, abs=0.2)
        assert book.streams.audio[0].channels == channels
    await store.close()


async def test_an_audiobook_says_what_made_it(tmp_path: Path) -> None:
    store, job = await make_job(tmp_path)
    (file,) = await write_results(store, job, ResultOptions("m4b", tags=make_sound_tags("solo")))
    found = find_provenance((store.find_results(job.id) / file.name).read_bytes())
    assert found.synthetic
    assert found.digital_source_type == MADE_BY_A_MODEL
    assert found.software == f"Cantata {version('cantata')}, solo"
    await store.close()


async def test_captions_are_in_the_time_of_their_file(tmp_path: Path) -> None:
    store, job = await make_job(tmp_path)
    files = await write_results(store, job, ResultOptions("wav", captions="srt"))
    assert [one.name for one in files] == ["01-sea.wav", "01-sea.srt", "02.wav", "02.srt"]
    captions = (store.find_results(job.id) / "01-sea.srt").read_text("utf-8")
    assert "00:00:00,250 --> 00:00:00,500\nThe sea." in captions
    assert "00:00:01,750 --> 00:00:02,000\nFar away." in captions
    # Without times of words, a sentence is a caption.
    captions = (store.find_results(job.id) / "02.srt").read_text("utf-8")
    assert "00:00:00,000 --> 00:00:01,000\nThe sky." in captions
    files = await write_results(store, job, ResultOptions("m4b", captions="vtt"))
    assert [one.name for one in files] == ["book.m4b", "book.vtt"]
    whole = (store.find_results(job.id) / "book.vtt").read_text("utf-8")
    assert "00:00:03.700 --> 00:00:04.700\nThe sky." in whole
    assert len(list(store.find_results(job.id).iterdir())) == 2
    await store.close()


async def test_files_are_signed_where_the_server_signs(tmp_path: Path) -> None:
    pytest.importorskip("c2pa")
    signer = FileSigner(SigningFiles(*write_trial_certificate(tmp_path)))
    store, job = await make_job(tmp_path / "jobs")
    for form, signed in (("m4b", True), ("mp3", True), ("flac", True), ("opus", False)):
        files = await write_results(store, job, ResultOptions(form), signer)
        for file in files:
            path = store.find_results(job.id) / file.name
            assert path.stat().st_size == file.size
            manifest = find_provenance(path.read_bytes()).manifest
            assert (manifest is not None) is signed, form
            assert manifest is None or manifest.state == "valid"
        assert len(list(store.find_results(job.id).iterdir())) == len(files)
        with av.open(str(store.find_results(job.id) / files[0].name)) as sound:
            assert sum(frame.samples for frame in sound.decode(audio=0)) > RATE
    await store.close()


async def test_what_cannot_be_signed_now_waits(tmp_path: Path) -> None:
    """Hours of speech are not lost to a certificate that has expired."""
    pytest.importorskip("c2pa")

    class Expired(FileSigner):
        def sign_file(self, path: Path, media_type: str) -> None:
            raise RequestFailed("the file cannot be signed: expired")

    signer = Expired(SigningFiles(*write_trial_certificate(tmp_path)))
    store, job = await make_job(tmp_path / "jobs")
    with pytest.raises(NotStored, match="cannot be signed"):
        await write_results(store, job, ResultOptions("m4b"), signer)
    assert len(await write_results(store, job, ResultOptions("m4b"))) == 1, "the sound is there"
    await store.close()


def find_writers(folder: Path) -> list[psutil.Process]:
    """The processes that write files there."""
    return find_descendants("cantata.jobs.writing") if folder.exists() else []


async def find_writer(folder: Path) -> psutil.Process:
    """The process that writes files there, once it does."""
    async with asyncio.timeout(60):
        while not (found := await asyncio.to_thread(find_writers, folder)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return found[0]


async def test_a_writer_ends_with_the_job_and_with_the_server(tmp_path: Path) -> None:
    """Two writers in one folder would mix their files."""
    store, job = await make_job(tmp_path)
    folder = store.find_results(job.id)
    os.truncate(store.find_sound(job.id, 0), 2 << 30)  # hours of silence
    writing = asyncio.create_task(write_results(store, job, ResultOptions("m4b")))
    writer = await find_writer(folder)
    writing.cancel()
    await asyncio.wait([writing])
    assert not writer.is_running()
    assert writing.cancelled()

    shutil.rmtree(folder)
    writing = asyncio.create_task(write_results(store, job, ResultOptions("m4b")))
    writer = await find_writer(folder)
    assert writer.nice() > psutil.Process().nice()
    writer.kill()
    with pytest.raises(NotStored, match="signal 9"):
        await writing

    shutil.rmtree(folder)
    command = (sys.executable, "-P", "-m", "cantata.jobs.writing", tmp_path, job.id)
    orphan = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
    assert orphan.stdin is not None
    orphan.stdin.write(msgspec.json.encode(ResultOptions("m4b")) + b"\n")
    await find_writer(folder)
    orphan.stdin.close()
    async with asyncio.timeout(60):
        assert await orphan.wait() == 1
    await store.close()


async def test_what_the_disk_does_not_take_waits(tmp_path: Path) -> None:
    store, job = await make_job(tmp_path)
    store.find_results(job.id).write_bytes(b"")  # a file where the folder should be
    with pytest.raises(NotStored, match="cannot be written: File exists"):
        await write_results(store, job, ResultOptions("m4b"))
    await store.close()


def test_what_a_format_cannot_have_is_refused() -> None:
    check_results(ResultOptions("m4b"), SoundShape(24_000, 2))
    with pytest.raises(InvalidRequest, match="channels"):
        check_results(ResultOptions("m4b"), SoundShape(24_000, 3))
    with pytest.raises(InvalidRequest, match="sample_rate"):
        check_results(ResultOptions("m4b", 24_000), SoundShape(24_000, 1))
    assert make_name("  \u00c9t\u00e9 -- 1/2 ") == "ete-1-2"
    assert make_name("\u4e00") == ""
