"""Uploaded voices on disk."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from cantata.contract.data.errors import (
    ConfigError,
    InvalidRequest,
    StorageFailed,
    UploadNotFound,
    VoiceExists,
    VoicesFull,
)
from cantata.contract.data.request import ReferenceAudio
from cantata.references.store import VoiceStore
from cantata.references.stored import StoreLimits, digest
from cantata.references.upload import VoiceUpload, check_upload
from sounds import humming

SOUND = ReferenceAudio(humming(2, 44_100, channels=2), 44_100, "hello there")
DIGEST = digest("a token")


def upload(name: str = "Ada") -> VoiceUpload:
    return check_upload(name, "true", "hello there", "warm")


def opened(folder: Path, limits: StoreLimits | None = None) -> VoiceStore:
    store = VoiceStore(folder, limits or StoreLimits())
    store.load()
    return store


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_voice_survives_a_restart(tmp_path: Path) -> None:
    kept = await opened(tmp_path / "voices").add(upload(), SOUND, DIGEST)
    store = opened(tmp_path / "voices")
    assert store.voices == (kept,)
    assert store.find(kept.id) == store.find("ADA") == kept
    assert (kept.name, kept.consent, kept.description) == ("Ada", "true", "warm")
    reference = await store.reference(kept)
    assert (reference.sample_rate, reference.transcript) == (44_100, "hello there")
    np.testing.assert_array_equal(reference.samples, SOUND.samples)


async def test_only_the_owner_can_read(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "voices"
    opened(folder)
    assert not folder.exists(), "nothing is made before the first upload"
    voice = await opened(folder).add(upload(), SOUND, DIGEST)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes == {
        "voices": 0o700,
        voice.id: 0o700,
        "voice.json": 0o600,
        "reference.wav": 0o600,
    }


async def test_a_deleted_voice_is_gone_from_disk(tmp_path: Path) -> None:
    store = opened(tmp_path)
    first, second = (
        await store.add(upload("a"), SOUND, DIGEST),
        await store.add(upload("b"), SOUND, DIGEST),
    )
    held = await store.reference(first)
    assert (await store.remove("A")).id == first.id
    assert names_in(tmp_path) == [second.id]
    assert len(held.samples) == 88_200
    with pytest.raises(UploadNotFound):
        await store.reference(first)
    with pytest.raises(UploadNotFound):
        await store.remove(first.id)
    assert opened(tmp_path).voices == (second,)


async def test_two_uploads_of_one_name_are_one_voice(tmp_path: Path) -> None:
    store = opened(tmp_path)
    names = ("Zoe\u0308", "zo\u00eb", "ZO\u00cb")
    results = await asyncio.gather(
        *(store.add(upload(name), SOUND, DIGEST) for name in names), return_exceptions=True
    )
    assert sum(isinstance(result, VoiceExists) for result in results) == 2
    assert len(store.voices) == len(names_in(tmp_path)) == 1


async def test_limits(tmp_path: Path) -> None:
    few = opened(tmp_path / "few", StoreLimits(voices=1))
    await few.add(upload("a"), SOUND, DIGEST)
    with pytest.raises(VoicesFull, match="1 voices"):
        await few.add(upload("b"), SOUND, DIGEST)
    small = opened(tmp_path / "small", StoreLimits(total_bytes=1_000_000))
    await small.add(upload("a"), SOUND, DIGEST)
    with pytest.raises(VoicesFull, match="1000000 bytes"):
        await small.add(upload("b"), SOUND, DIGEST)
    await small.remove("a")
    await small.add(upload("b"), SOUND, DIGEST)


async def test_damaged_voices_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path)
    voices = [await store.add(upload(f"voice {n}"), SOUND, DIGEST) for n in range(7)]
    folders = [tmp_path / voice.id for voice in voices]
    (folders[0] / "voice.json").write_text("{")
    (folders[1] / "voice.json").write_text(voices[2].model_dump_json())
    (folders[2] / "reference.wav").write_bytes(b"RIFF")
    (folders[3] / "reference.wav").unlink()
    (folders[4] / "reference.wav").write_bytes(bytes(5 << 20))
    (folders[5] / "reference.wav").rename(tmp_path / "elsewhere.wav")
    (folders[5] / "reference.wav").symlink_to(tmp_path / "elsewhere.wav")
    (tmp_path / "readme.txt").write_text("not a voice")
    with caplog.at_level(logging.WARNING):
        assert opened(tmp_path).voices == (voices[6],)
    assert all(str(folder) in caplog.text for folder in folders[:6])
    assert folders[0].exists(), "what a person may want to mend is left alone"


async def test_what_a_crash_left_is_cleared(tmp_path: Path) -> None:
    voice = await opened(tmp_path).add(upload(), SOUND, DIGEST)
    left = tmp_path / f".{voice.id[:-1]}0"
    left.mkdir()
    (left / "reference.wav").write_bytes(b"half")
    assert opened(tmp_path).voices == (voice,)
    assert not left.exists()


async def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)

    def fsync(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageFailed, match="No space left"):
            await store.add(upload(), SOUND, DIGEST)
    assert names_in(tmp_path) == []
    assert store.voices == ()
    await store.add(upload(), SOUND, DIGEST)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError, match="voices cannot be read"):
        opened(file)


@pytest.mark.parametrize(
    "name", ["../../etc", "a/b", "a\\b", "a\0b", "a\nb", "<b>", "voice_1", "...", "\u202eada"]
)
def test_invalid_names_are_rejected(name: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        upload(name)
    assert refusal.value.param == "name"


@pytest.mark.parametrize(
    "name", ["Ada", "\u738b\u5c0f\u660e", "O'Neil-Smith Jr.", "\u0905\u0928\u093f\u0932", "7"]
)
def test_names_of_all_scripts(name: str) -> None:
    assert upload(name).name == name
