"""Uploaded voices on disk: one folder each, named by a generated id, and always complete.

    <folder>/voice_<32 hex digits>/voice.json      what is known of it
                                   reference.wav   24 kHz mono

A voice is written to a temporary folder and renamed into place, and renamed away before it is
deleted, so that a crash leaves no partial voice. One server at a time uses a folder.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import soundfile
from pydantic import ValidationError

from cantata.contract.data.errors import (
    ConfigError,
    NotStored,
    StorageFailed,
    UploadNotFound,
)
from cantata.contract.data.request import ReferenceAudio
from cantata.media.sound import MAX_KEPT_CHANNELS
from cantata.references.stored import (
    MAX_SOUND_BYTES,
    MAX_WORDS_BYTES,
    StoredVoice,
    StoreLimits,
    build_name_taken_error,
    build_reference,
    encode_wav,
    find_voice,
    make_stored_voice,
)
from cantata.references.upload import ID_PREFIX, VoiceUpload

logger = logging.getLogger(__name__)

_WORDS, _SOUND = "voice.json", "reference.wav"
_UNFINISHED = "."
"""Prefix of the name of a folder that is being written or deleted."""
_ID = re.compile(rf"{ID_PREFIX}[0-9a-f]{{32}}")
_READERS = 4


class VoiceStore:
    """The voices of one folder. The folder is created by the first upload.

    Changes happen in worker threads, one at a time and each as a whole: a caller that is cancelled
    leaves the store as it was or as it was asked to be.
    """

    def __init__(self, folder: Path, limits: StoreLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._changing = threading.Lock()
        # Its own threads: a slow disk must not delay work that waits for the shared ones.
        self._writing = ThreadPoolExecutor(1, "cantata-voices-write")
        self._reading = ThreadPoolExecutor(_READERS, "cantata-voices-read")
        self._voices: Mapping[str, StoredVoice] = {}
        """Voices by id, oldest first. Replaced, never changed, so that readers need no lock."""

    @property
    def voices(self) -> tuple[StoredVoice, ...]:
        return tuple(self._voices.values())

    def find(self, name: str) -> StoredVoice | None:
        return find_voice(self._voices.values(), name)

    def load(self) -> None:
        """Read the folder. Damaged voices are left alone and logged; unfinished ones are removed.

        Blocks.

        Raises:
            ConfigError: the folder cannot be read.
        """
        with self._changing:
            try:
                found = sorted(self._folder.iterdir()) if self._folder.exists() else []
            except OSError as error:
                raise ConfigError(f"{self._folder}: voices cannot be read from it") from error
            voices = []
            for path in found:
                if path.name.startswith(_UNFINISHED + ID_PREFIX):
                    shutil.rmtree(path, ignore_errors=True)
                elif _ID.fullmatch(path.name) and (voice := _read_voice(path)):
                    voices.append(voice)
            voices.sort(key=lambda voice: (voice.created_at, voice.id))
            self._voices = {voice.id: voice for voice in voices}

    async def refresh(self, name: str | None = None, *, now: bool = False) -> None:
        """Nothing to do: no other server changes the folder."""

    async def add(
        self, upload: VoiceUpload, reference: ReferenceAudio, deletion_digest: str
    ) -> StoredVoice:
        """Keep a voice, as `Voices.add`. Raises `NotStored` if the disk rejects it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._writing, self._add, upload, reference, deletion_digest
        )

    async def remove(self, name: str) -> StoredVoice:
        """Remove a voice from disk, as `Voices.remove` says."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writing, self._remove, name)

    async def reference(self, voice: StoredVoice) -> ReferenceAudio:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, self._read_reference, voice)

    def _add(
        self, upload: VoiceUpload, reference: ReferenceAudio, deletion_digest: str
    ) -> StoredVoice:
        voice, sound = make_stored_voice(upload, deletion_digest), encode_wav(reference)
        with self._changing:
            self._check_room(upload, len(sound))
            try:
                self._write(voice, sound)
            except OSError as error:
                raise NotStored(f"the voice cannot be stored: {error.strerror}") from error
            self._voices = {**self._voices, voice.id: voice}
        return voice

    def _check_room(self, upload: VoiceUpload, size: int) -> None:
        if self.find(upload.name) is not None:
            raise build_name_taken_error(upload.name)
        used = sum(_measure_size(self._folder / id) for id in self._voices)
        self._limits.check(len(self._voices), used + size)

    def _write(self, voice: StoredVoice, sound: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self._folder / f"{_UNFINISHED}{voice.id}"
        finished = self._folder / voice.id
        try:
            unfinished.mkdir(mode=0o700)
            _write_file(unfinished / _WORDS, voice.model_dump_json(indent=2).encode())
            _write_file(unfinished / _SOUND, sound)
            _sync(unfinished)
            unfinished.rename(finished)
            _sync(self._folder)
        except OSError:
            for left in (unfinished, finished):
                shutil.rmtree(left, ignore_errors=True)
            raise

    def _remove(self, name: str) -> StoredVoice:
        with self._changing:
            voice = self.find(name)
            if voice is None:
                raise UploadNotFound(f"no uploaded voice {name!r}", "voice")
            leaving = self._folder / f"{_UNFINISHED}{voice.id}"
            try:
                (self._folder / voice.id).rename(leaving)
            except FileNotFoundError:
                logger.warning("%s had already been deleted", voice.id)
            except OSError as error:
                raise StorageFailed(f"the voice cannot be deleted: {error.strerror}") from error
            self._voices = {id: kept for id, kept in self._voices.items() if id != voice.id}
            _delete(leaving)
        return voice

    def _read_reference(self, voice: StoredVoice) -> ReferenceAudio:
        try:
            return build_reference(voice, (self._folder / voice.id / _SOUND).read_bytes())
        except FileNotFoundError:
            raise UploadNotFound(f"the voice {voice.name!r} was deleted", "voice") from None
        except (OSError, soundfile.LibsndfileError) as error:
            raise StorageFailed(f"the voice {voice.name!r} cannot be read from disk") from error


def _read_voice(path: Path) -> StoredVoice | None:
    """The voice in a folder; None if it is damaged, which is logged."""
    words, sound = path / _WORDS, path / _SOUND
    try:
        if path.is_symlink() or words.is_symlink() or sound.is_symlink():
            raise ValueError("a symbolic link")
        if words.stat().st_size > MAX_WORDS_BYTES or sound.stat().st_size > MAX_SOUND_BYTES:
            raise ValueError("too large")
        voice = StoredVoice.model_validate_json(words.read_bytes())
        if voice.id != path.name:
            raise ValueError("its id belongs to another folder")
        if soundfile.info(sound).channels > MAX_KEPT_CHANNELS:
            raise ValueError("its recording is neither mono nor stereo")
    except (OSError, ValueError, soundfile.LibsndfileError) as error:
        reason = "not a voice.json" if isinstance(error, ValidationError) else error
        logger.warning("the uploaded voice in %s is left out: %s", path, reason)
        return None
    return voice


def _delete(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
            _sync(folder.parent)
    except OSError as error:
        raise StorageFailed(
            f"the voice is deleted, but its files stay until the next start: {error.strerror}"
        ) from error


def _measure_size(folder: Path) -> int:
    try:
        return sum(path.stat().st_size for path in folder.iterdir())
    except FileNotFoundError:
        return 0


def _write_file(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Write a folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
