"""Reads recordings that requests contain or name by a URL, and decodes their untrusted files, in
bounded time and memory.

`decode` blocks: the event loop calls it through `ReferenceReader`.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from cantata.contract.data.errors import InvalidAudio
from cantata.contract.data.request import ReferenceAudio
from cantata.media.kinds import AUDIO
from cantata.media.loading import MediaLoader, check_size
from cantata.media.sound import MAX_WORK_S, Recording, SoundLimits, read_sound

MIN_S, MAX_S = 0.5, 60.0
"""Shortest and longest recording, in seconds."""
USED_S = 15.0
"""Seconds of a longer recording that are used, from its beginning."""

_MIN_SOUNDING_S = 0.25
_QUIET_DBFS = -50.0
_BLOCK_S = 0.02


def decode(data: bytes, transcript: str | None, param: str) -> ReferenceAudio:
    """The first 15 s of a sound file as a reference.

    Args:
        data: a whole file, in one of `containers.AUDIO_FORMATS`.
        param: the field that it came in, for error messages.

    Returns:
        Samples at the file's rate and with its channels, as far as these are kept, in -1..1.

    Raises:
        InvalidAudio: not a sound file, damaged, too short, too long or too quiet; or longer than
            what is used, so that its transcript would not match.
    """
    valid = f"{MIN_S:g} to {MAX_S:g} s are accepted and the first {USED_S:g} s used"
    limits = SoundLimits(MAX_S, USED_S, valid, time.monotonic() + MAX_WORK_S)
    return _check_recording(read_sound(data, limits, param), transcript, param)


def _check_recording(recording: Recording, transcript: str | None, param: str) -> ReferenceAudio:
    seconds = recording.seconds
    if seconds < MIN_S:
        raise InvalidAudio(
            f"{param} is {seconds:.2f} s long; at least {MIN_S:g} s are needed, 3 to {USED_S:g} s "
            "are best",
            param,
        )
    if transcript is not None and seconds > USED_S:
        raise InvalidAudio(
            f"{param} is {seconds:.1f} s long, of which {USED_S:g} s are used: ref_text would not "
            "match; shorten both or leave out ref_text",
            param,
        )
    reference = ReferenceAudio(recording.samples, recording.sample_rate, transcript)
    _check_loudness(reference, param)
    return reference


def _check_loudness(reference: ReferenceAudio, param: str) -> None:
    samples, block = reference.mono, round(_BLOCK_S * reference.sample_rate)
    blocks = samples[: len(samples) - len(samples) % block].reshape(-1, block)
    loud = np.sqrt(np.square(blocks).mean(axis=1)) > 10 ** (_QUIET_DBFS / 20)
    sounding_s = float(loud.sum()) * _BLOCK_S
    if sounding_s < _MIN_SOUNDING_S:
        raise InvalidAudio(
            f"{param} is too quiet: {sounding_s:.1f} s of it are louder than {_QUIET_DBFS:g} dBFS, "
            f"at least {_MIN_SOUNDING_S:g} s must be; record it louder or closer",
            param,
        )


class ReferenceReader:
    """Reads recordings within one server's limits, away from the event loop."""

    def __init__(self, max_bytes: int, loader: MediaLoader) -> None:
        self._max_bytes = max_bytes
        self._loader = loader

    async def read(self, source: str, transcript: str | None, param: str) -> ReferenceAudio:
        """The recording behind a base64 `data:` URL or, if fetching is on, an http(s) URL.

        Raises:
            InvalidAudio: not such a URL, or the recording cannot be used.
            PayloadTooLarge: it has too many bytes.
        """
        data = await self._loader.load(source, AUDIO, param, self._max_bytes)
        return await self.decode(data, transcript, param)

    async def decode(self, data: bytes, transcript: str | None, param: str) -> ReferenceAudio:
        """The recording in a file's bytes; errors as in `read`."""
        check_size(len(data), param, self._max_bytes)
        return await self._loader.decode(partial(decode, data, transcript, param))
