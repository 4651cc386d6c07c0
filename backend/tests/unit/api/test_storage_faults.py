"""A disk that is full, read-only, broken or slow: uploads are rejected, speech continues."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fake_service import Behaviour, FakeService, eventually, expected_pcm
from live_server import running
from server_process import server_process

from cantata.api.settings import ReferenceSettings, ServerSettings
from cantata.audio.pcm import encode_s16le
from cantata.references import store
from sounds import wav

VOICES = "/v1/audio/voices"
FORM = {"name": "Ada", "consent": "true"}
TEXT = "Speech goes on."


async def upload(http: httpx.AsyncClient, seconds: float = 2.0) -> httpx.Response:
    sample = ("a.wav", wav(seconds))
    return await http.post(VOICES, data=FORM, files={"audio_sample": sample})


def check_not_stored(answer: httpx.Response) -> None:
    assert answer.status_code == 507
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("server_error", "storage_failed")


def no_large_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


async def test_no_file_can_grow(tmp_path: Path) -> None:
    """The second upload is too large for memory, so that the form's own file fails."""
    async with (
        server_process(no_large_files, voices_dir=str(tmp_path)) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        body = {"input": TEXT, "response_format": "pcm"}
        speaking = asyncio.create_task(http.post("/v1/audio/speech", json=body))
        for seconds in (2.0, 30.0):
            check_not_stored(await upload(http, seconds))
            assert not os.listdir(tmp_path)
        assert (await http.get(VOICES)).json()["voices"]
        server.let_sound()
        assert (await speaking).content == encode_s16le(expected_pcm(TEXT, Behaviour()))


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if os.geteuid():
        pytest.skip("needs root, to mount a small file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path])
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


async def test_a_full_and_a_read_only_disk(small_disk: Path) -> None:
    service = FakeService()
    settings = ServerSettings(references=ReferenceSettings(voices_dir=small_disk / "voices"))
    async with (
        running(service, settings) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        await eventually(lambda: service.ready)
        filler = small_disk / "filler"
        filler.write_bytes(bytes((1 << 20) - (32 << 10)))
        check_not_stored(await upload(http))
        assert not os.listdir(small_disk / "voices")
        filler.unlink()
        assert (await upload(http)).status_code == 200
        assert (await http.delete(f"{VOICES}/Ada")).status_code == 200
        make_read_only(small_disk)
        check_not_stored(await upload(http))
        assert (await http.post("/v1/audio/speech", json={"input": TEXT})).status_code == 200
        assert not os.listdir(small_disk / "voices")


async def test_a_slow_disk_delays_no_other_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads hang on the disk, more of them than the shared threads."""
    writing, may_write = threading.Event(), threading.Event()
    write_file = store._write_file

    def write_slowly(path: Path, data: bytes) -> None:
        writing.set()
        assert may_write.wait(60)
        write_file(path, data)

    monkeypatch.setattr(store, "_write_file", write_slowly)
    service = FakeService()
    settings = ServerSettings(references=ReferenceSettings(voices_dir=tmp_path))
    async with (
        running(service, settings) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        await eventually(lambda: service.ready)
        uploads = [asyncio.create_task(upload(http)) for _ in range(12)]
        await eventually(writing.is_set)
        for response_format in ("pcm", "mp3"):
            body = {"input": TEXT, "response_format": response_format}
            assert (await http.post("/v1/audio/speech", json=body)).status_code == 200
        assert not any(one.done() for one in uploads)
        may_write.set()
        statuses = sorted(one.status_code for one in await asyncio.gather(*uploads))
        assert statuses == [200] + [409] * 11
