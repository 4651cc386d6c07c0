"""Uploaded voices that several servers share."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest

from cantata.contract.data.errors import (
    ConfigError,
    NotInstalled,
    StorageFailed,
    UploadNotFound,
    VoiceExists,
    VoicesFull,
)
from cantata.contract.data.request import ReferenceAudio
from cantata.references.shared import SharedVoiceStore
from cantata.references.stored import StoreLimits
from cantata.references.upload import VoiceUpload, check_upload
from sounds import humming

SOUND = ReferenceAudio(humming(2, 24_000), 24_000, "hello there")


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        yield f"file://{tmp_path}/voices"
        return
    folder = f"memory://{uuid.uuid4().hex}"
    yield folder
    files = fsspec.filesystem("memory")
    if files.exists(folder):
        files.rm(folder, recursive=True)


def upload(name: str = "Ada") -> VoiceUpload:
    return check_upload(name, "true", "hello there", "warm")


def opened(
    url: str, clock: Clock | None = None, limits: StoreLimits | None = None
) -> SharedVoiceStore:
    store = SharedVoiceStore(url, limits or StoreLimits(), clock or Clock())
    store.load()
    return store


def files_in(url: str) -> list[str]:
    files, root = fsspec.core.url_to_fs(url)
    return [str(path) for path in files.find(root)]


async def test_a_voice_of_one_server_is_the_others_too(url: str) -> None:
    clock = Clock()
    first, second = opened(url), opened(url, clock)
    kept = await first.add(upload(), SOUND, "digest")
    assert second.find("ada") is None
    clock.now_s += 1
    await second.refresh("ada")
    assert second.find("ADA") == second.find(kept.id) == kept
    assert second.voices == opened(url).voices == (kept,)
    reference = await second.reference(kept)
    assert (reference.sample_rate, reference.transcript) == (24_000, "hello there")
    np.testing.assert_array_equal(reference.samples, SOUND.samples)


async def test_a_name_is_claimed_once(url: str) -> None:
    """Whichever servers are asked at the same moment."""
    stores = [opened(url) for _ in range(6)]
    names = ["Zoe\u0308", "zo\u00eb", "ZO\u00cb"] * 2
    results = await asyncio.gather(
        *(store.add(upload(name), SOUND, "d") for store, name in zip(stores, names, strict=True)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, VoiceExists) for result in results) == 5
    assert len(opened(url).voices) == 1
    assert len(files_in(url)) == 2, "the others' recordings are gone too"


async def test_what_another_deleted_is_gone_within_seconds(url: str) -> None:
    clock = Clock()
    first, second = opened(url), opened(url, clock)
    kept = await first.add(upload(), SOUND, "digest")
    clock.now_s += 6
    await second.refresh()
    assert (await first.remove("ada")).id == kept.id
    assert files_in(url) == []
    with pytest.raises(UploadNotFound):
        await second.reference(kept)
    await second.refresh("ada")
    assert second.find("ada") == kept, "what is known is not asked for again at once"
    clock.now_s += 6
    await second.refresh("ada")
    assert second.find("ada") is None
    with pytest.raises(UploadNotFound):
        await second.remove(kept.id)


async def test_a_name_can_be_used_again(url: str) -> None:
    clock = Clock()
    first, second = opened(url), opened(url, clock)
    old = await first.add(upload(), SOUND, "digest")
    clock.now_s += 6
    await second.refresh()
    await first.remove(old.id)
    new = await first.add(upload("ADA"), SOUND, "digest")
    clock.now_s += 6
    await second.refresh("ada")
    assert second.find("ada") == new != old
    with pytest.raises(UploadNotFound):
        await second.remove(old.id)
    assert (await second.reference(new)).transcript == "hello there"


async def test_names_that_do_not_exist_do_not_load_the_store(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    store = opened(url, clock)
    asked = []
    files = store._files
    monkeypatch.setattr(files, "ls", lambda *given, **named: asked.append(given) or [])  # type: ignore[func-returns-value]
    for _ in range(100):
        clock.now_s += 0.009
        await store.refresh("nobody")
    assert len(asked) == 1, "in one second"


async def test_limits_are_those_of_all_servers(url: str) -> None:
    first, second = opened(url), opened(url, limits=StoreLimits(voices=1))
    await first.add(upload("a"), SOUND, "d")
    with pytest.raises(VoicesFull, match="1 voices"):
        await second.add(upload("b"), SOUND, "d")
    small = opened(url, limits=StoreLimits(total_bytes=300_000))
    with pytest.raises(VoicesFull, match="300000 bytes"):
        await small.add(upload("b"), SOUND, "d")


async def test_what_is_damaged_is_left_out(url: str, caplog: pytest.LogCaptureFixture) -> None:
    store = opened(url)
    kept, damaged = [await store.add(upload(name), SOUND, "d") for name in ("a", "b")]
    files, root = fsspec.core.url_to_fs(url)
    names = {path: files.cat_file(path) for path in files.find(f"{root}/names")}
    path = next(path for path, words in names.items() if damaged.id.encode() in words)
    files.pipe_file(path, b"{")
    assert opened(url).voices == (kept,)
    assert path in caplog.text
    files.pipe_file(path, next(words for words in names.values() if kept.id.encode() in words))
    assert opened(url).voices == (kept,), "a copy under another name claims nothing"


async def test_a_store_that_fails_is_a_typed_error(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(url)
    kept = await store.add(upload(), SOUND, "d")

    def fail(*given: object, **named: object) -> None:
        raise PermissionError(13, "no")

    for name in ("ls", "pipe_file", "cat_file"):
        monkeypatch.setattr(store._files, name, fail)
    with pytest.raises(StorageFailed):
        await store.reference(kept)
    with pytest.raises(StorageFailed):
        await store.add(upload("b"), SOUND, "d")
    with pytest.raises(ConfigError, match="voices cannot be read"):
        store.load()
    assert store.find("ada") == kept, "what was known stays known"


def test_urls_that_cannot_be_used_are_named() -> None:
    with pytest.raises(ConfigError, match=r"nothing://here.*not a store"):
        SharedVoiceStore("nothing://here", StoreLimits())
    with pytest.raises(NotInstalled, match="dask"):
        SharedVoiceStore("dask://here", StoreLimits())
