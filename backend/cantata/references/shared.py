"""Uploaded voices in a store that several servers share: anything that fsspec reaches, such as a
shared folder, S3 or GCS.

    <url>/names/<digest of a name>.json     what is known of the voice that has this name
         sounds/<id>.wav                    24 kHz mono, or as it was uploaded

The file of a name is created exclusively, after the sound is there: so a name belongs to one
voice, whichever servers are asked at the same time, and a voice is complete or absent.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import soundfile
from pydantic import ValidationError

from cantata.contract.data.errors import (
    ConfigError,
    NotInstalled,
    NotStored,
    StorageFailed,
    UploadNotFound,
)
from cantata.contract.data.request import ReferenceAudio
from cantata.references.stored import (
    MAX_WORDS_BYTES,
    StoredVoice,
    StoreLimits,
    build_name_taken_error,
    build_reference,
    encode_wav,
    find_voice,
    make_stored_voice,
)
from cantata.references.upload import VoiceUpload, fold

logger = logging.getLogger(__name__)

_NAMES, _SOUNDS = "names", "sounds"
_FRESH_S = 5.0
"""Seconds for which the list counts as fresh, unless a voice is not found in it."""
_MISSED_S = 0.5
"""Seconds for which it counts as fresh even then: requests for unknown names must not load the
store."""
_LIMIT_S = 30.0
"""Seconds within which the store must answer."""
_THREADS = 4
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Known:
    """The file of one name, as last read."""

    stamp: str
    """Changes when the file does."""
    voice: StoredVoice | None
    """None: the file was damaged or not complete yet."""


class SharedVoiceStore:
    """The voices behind one URL.

    Args:
        url: a folder, as fsspec writes it.
        limits: of all servers together; two uploads at the same moment may exceed them.
        clock: monotonic seconds.

    Raises:
        ConfigError: the URL is not one that can be used here.
        NotInstalled: a package that it needs is missing.
    """

    def __init__(
        self, url: str, limits: StoreLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._limits = limits
        self._clock = clock
        self._files, self._root = _open(url)
        self._reading = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, "cantata-voices")
        self._read_s: float | None = None
        self._known: Mapping[str, _Known] = {}
        """Voices by path. Replaced, never changed, so that readers need no lock."""

    @property
    def voices(self) -> tuple[StoredVoice, ...]:
        """The voices at the last look, the oldest first."""
        found = [known.voice for known in self._known.values() if known.voice is not None]
        return tuple(sorted(found, key=lambda voice: (voice.created_at, voice.id)))

    def find(self, name: str) -> StoredVoice | None:
        """The voice with this id or name at the last look."""
        return find_voice(self.voices, name)

    def load(self) -> None:
        """Read the store. Blocks. Raises ConfigError: the store cannot be read."""
        try:
            self._read(0.0)
        except OSError as error:
            raise ConfigError(f"{self._url}: voices cannot be read from it ({error})") from error

    async def refresh(self, name: str | None = None, *, now: bool = False) -> None:
        missed = name is not None and self.find(name) is None
        await self._run(self._read, 0.0 if now else _MISSED_S if missed else _FRESH_S)

    async def add(
        self, upload: VoiceUpload, reference: ReferenceAudio, deletion_digest: str
    ) -> StoredVoice:
        return await self._run(self._add, upload, reference, deletion_digest)

    async def remove(self, name: str) -> StoredVoice:
        return await self._run(self._remove, name)

    async def reference(self, voice: StoredVoice) -> ReferenceAudio:
        return await self._run(self._reference, voice)

    async def _run(self, work: Callable[..., R], *args: object) -> R:
        """Run a function that may block in a thread, for a limited time. The thread finishes even
        if the caller is cancelled, so each change is made fully or not at all."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_LIMIT_S):
                return await loop.run_in_executor(self._threads, work, *args)
        except (OSError, TimeoutError) as error:
            logger.warning("uploaded voices in %s: %s", self._url, error or "no answer")
            raise StorageFailed("the store of uploaded voices does not answer") from error

    def _read(self, fresh_s: float) -> None:
        """List the names and read the files that have changed, unless that was done in the last
        `fresh_s` seconds."""
        with self._reading:
            if self._read_s is not None and self._clock() - self._read_s < fresh_s:
                return
            known = {}
            for path, stamp in self._list_stamps().items():
                before = self._known.get(path)
                known[path] = before if before and before.stamp == stamp else self._ask(path, stamp)
            self._known = known
            self._read_s = self._clock()

    def _list_stamps(self) -> dict[str, str]:
        folder = f"{self._root}/{_NAMES}"
        self._files.invalidate_cache(folder)
        try:
            listed = self._files.ls(folder, detail=True)
        except FileNotFoundError:
            return {}
        return {
            entry["name"]: repr(sorted(entry.items(), key=str))
            for entry in listed
            if entry["type"] == "file" and entry["name"].endswith(".json")
        }

    def _ask(self, path: str, stamp: str) -> _Known:
        try:
            words = self._files.cat_file(path, end=MAX_WORDS_BYTES)
            voice = StoredVoice.model_validate_json(words)
            if not path.endswith(self._get_path(voice.name)):
                raise ValueError("its name belongs to another file")
        except FileNotFoundError:
            return _Known(stamp, None)
        except ValueError as error:
            # Also a file that is being written just now: then its stamp changes.
            reason = "not a voice" if isinstance(error, ValidationError) else error
            logger.warning("the uploaded voice in %s is left out: %s", path, reason)
            return _Known(stamp, None)
        return _Known(stamp, voice)

    def _add(
        self, upload: VoiceUpload, reference: ReferenceAudio, deletion_digest: str
    ) -> StoredVoice:
        voice, sound = make_stored_voice(upload, deletion_digest), encode_wav(reference)
        self._read(0.0)
        if self.find(upload.name) is not None:
            raise build_name_taken_error(upload.name)
        self._limits.check(len(self.voices), self._measure_size() + len(sound))
        try:
            self._files.makedirs(f"{self._root}/{_SOUNDS}", exist_ok=True)
            self._files.makedirs(f"{self._root}/{_NAMES}", exist_ok=True)
            self._files.pipe_file(self._get_sound(voice), sound)
            self._claim(voice)
        except OSError as error:
            raise NotStored("the voice cannot be stored") from error
        self._read(0.0)
        return voice

    def _claim(self, voice: StoredVoice) -> None:
        """Take the voice's name, unless another upload was faster."""
        words = voice.model_dump_json(indent=2).encode()
        path = f"{self._root}/{self._get_path(voice.name)}"
        try:
            self._files.pipe_file(path, words, mode="create")
        except FileExistsError:
            self._discard(voice)
            raise build_name_taken_error(voice.name) from None
        except OSError:
            self._discard(voice)
            raise

    def _remove(self, name: str) -> StoredVoice:
        self._read(0.0)
        voice = self.find(name)
        if voice is None:
            raise UploadNotFound(f"no uploaded voice {name!r}", "voice")
        try:
            self._files.rm_file(f"{self._root}/{self._get_path(voice.name)}")
        except FileNotFoundError:
            logger.warning("%s had already been deleted", voice.id)
        self._discard(voice)
        self._read(0.0)
        return voice

    def _reference(self, voice: StoredVoice) -> ReferenceAudio:
        try:
            return build_reference(voice, self._files.cat_file(self._get_sound(voice)))
        except FileNotFoundError:
            raise UploadNotFound(f"the voice {voice.name!r} was deleted", "voice") from None
        except soundfile.LibsndfileError as error:
            raise StorageFailed(f"the voice {voice.name!r} cannot be read") from error

    def _discard(self, voice: StoredVoice) -> None:
        """Delete a sound that belongs to no name. If that fails, it only takes up space."""
        try:
            self._files.rm_file(self._get_sound(voice))
        except OSError as error:
            logger.warning("the recording of %s stays: %s", voice.id, error)

    def _measure_size(self) -> int:
        """Bytes of all sounds together."""
        folder = f"{self._root}/{_SOUNDS}"
        self._files.invalidate_cache(folder)
        try:
            return sum(entry["size"] or 0 for entry in self._files.ls(folder, detail=True))
        except FileNotFoundError:
            return 0

    def _get_sound(self, voice: StoredVoice) -> str:
        return f"{self._root}/{_SOUNDS}/{voice.id}.wav"

    def _get_path(self, name: str) -> str:
        return f"{_NAMES}/{hashlib.sha256(fold(name).encode()).hexdigest()}.json"


def _open(url: str) -> tuple[Any, str]:
    """The file system, and the folder's path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise NotInstalled("shared voices need fsspec: pip install 'cantata[ray]'") from error
    try:
        files, root = url_to_fs(url)
    except ImportError as error:
        raise NotInstalled(f"{url}: {error}") from error
    except (ValueError, OSError) as error:
        raise ConfigError(f"{url}: not a store of files ({error})") from error
    return files, root.rstrip("/")
