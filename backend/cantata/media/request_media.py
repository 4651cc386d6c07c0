"""The files of one request to a model, loaded and decoded within the request's limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import AudioPart, ImagePart, VideoPart
from cantata.contract.data.errors import InvalidAudio, Overloaded, PayloadTooLarge
from cantata.media.images import PictureOutput, Pixels, read_image, write_picture
from cantata.media.kinds import AUDIO, IMAGE, VIDEO
from cantata.media.loading import MediaLoader, check_size
from cantata.media.signing import FileSigner
from cantata.media.sound import Recording, SoundLimits, read_sound, read_track
from cantata.media.video import VideoLimits, read_video

T = TypeVar("T")
_FULL_SCALE = np.float32(32768)


@dataclass(frozen=True, slots=True)
class MediaLimits:
    max_bytes: int = 32 << 20
    """Bytes of all files of a request, before decoding."""
    max_audio_s: float = 600.0
    """Seconds of all sound of a request."""
    max_image_pixels: int = 16_384 * 28 * 28
    """Pixels of one picture; a larger one is scaled down."""
    max_low_image_pixels: int = 512 * 512
    """Pixels of a picture that is sent with `"detail": "low"`."""
    max_decoded_bytes: int = 256 << 20
    """Bytes of all files of a request, decoded."""
    max_held_bytes: int = 1 << 30
    """Bytes of the decoded files of all running requests together."""
    work_s: float = 60.0
    """Seconds to load and decode all files of a request."""


class MediaReader:
    """Reads the files of one server's requests, and writes its pictures.

    Args:
        tagged: pictures say that a model made them.
        signer: signs pictures; None: nobody does.
    """

    def __init__(
        self,
        loader: MediaLoader,
        limits: MediaLimits,
        *,
        tagged: bool = True,
        signer: FileSigner | None = None,
    ) -> None:
        self.limits = limits
        self._tagged = tagged
        self._signer = signer
        self.held_bytes = 0
        """Bytes of the decoded files of all running requests."""
        self._loader = loader

    @contextmanager
    def request(self) -> Iterator[RequestMedia]:
        """The files of one request. They count as held until the block ends."""
        media = RequestMedia(self, self._loader, self.limits)
        try:
            yield media
        finally:
            self.held_bytes -= media.decoded_bytes

    async def load_picture(self, source: str, param: str) -> bytes:
        """The file of a picture that was sent as text; errors as of `RequestMedia`."""
        return await self._loader.load(source, IMAGE, param, self.limits.max_bytes)

    async def load_sound(self, source: str, param: str) -> bytes:
        """The file of a recording at a URL, or in a `data:` URL; errors as of `RequestMedia`."""
        return await self._loader.load(source, AUDIO, param, self.limits.max_bytes)

    async def unpack_sound(self, encoded: str, param: str) -> bytes:
        """The file of a recording that was sent as base64; errors as of `RequestMedia`."""
        return await self._loader.unpack(encoded, AUDIO, param, self.limits.max_bytes)

    async def write(
        self, pixels: Pixels, output: PictureOutput, size: tuple[int, int] | None = None
    ) -> bytes:
        """Encode a picture as `write_picture` does, in a worker thread, in turn with the files that
        are read."""
        written = replace(output, tagged=self._tagged)
        return await self._loader.decode(lambda: self._encode_picture(pixels, written, size))

    def _encode_picture(
        self, pixels: Pixels, output: PictureOutput, size: tuple[int, int] | None
    ) -> bytes:
        file = write_picture(pixels, output, size)
        return file if self._signer is None else self._signer.sign(file, f"image/{output.kind}")


class RequestMedia:
    """Reads the files of one request, one after another.

    Every method raises:
        InvalidMedia: the file cannot be loaded or decoded; of the kind that was asked for.
        PayloadTooLarge: the request's files are larger than they may be, as files or decoded.
        Overloaded: other requests hold the memory that it needs.
    """

    def __init__(self, reader: MediaReader, loader: MediaLoader, limits: MediaLimits) -> None:
        self.decoded_bytes = 0
        self._reader = reader
        self._loader = loader
        self._limits = limits
        self._file_bytes = 0
        self._audio_s = 0.0
        self._deadline_s = time.monotonic() + limits.work_s

    async def audio(self, encoded: str, param: str) -> AudioPart:
        """The sound in a file that was sent as base64."""
        data = await self._loader.unpack(encoded, AUDIO, param, self._bytes_left)
        return await self._decode_audio(data, param)

    async def load_audio(self, url: str, param: str) -> AudioPart:
        data = await self._loader.load(url, AUDIO, param, self._bytes_left)
        return await self._decode_audio(data, param)

    async def to_audio_part(
        self, samples: NDArray[np.int16], sample_rate: int, param: str
    ) -> AudioPart:
        """Sound that a conversation already holds: [N] samples at `sample_rate` Hz. Nothing is
        loaded."""
        self._audio_s += len(samples) / sample_rate
        if self._audio_s > self._limits.max_audio_s:
            raise InvalidAudio(f"{param}: there is too much sound; {self._accepted}", param)
        self._keep(samples.size * np.dtype(np.float32).itemsize, param)
        # Files of other requests may take seconds to decode: this does not wait for its turn.
        wide = await asyncio.to_thread(_widen, samples)
        return AudioPart(wide, sample_rate)

    async def load_image(self, url: str, param: str, *, low: bool = False) -> ImagePart:
        """The picture behind a URL; `low`: a small version of it."""
        data = await self._loader.load(url, IMAGE, param, self._bytes_left)
        limits = self._limits
        max_pixels = limits.max_low_image_pixels if low else limits.max_image_pixels
        return ImagePart(await self._decode_image(data, max_pixels, param))

    async def image(self, data: bytes, param: str) -> Pixels:
        """The picture in a file: [H, W, 3] RGB."""
        check_size(len(data), param, self._bytes_left)
        return await self._decode_image(data, self._limits.max_image_pixels, param)

    async def load_video(self, url: str, param: str, *, with_sound: bool = False) -> VideoPart:
        """Frames of the video behind a URL; `with_sound`: with its sound, if it has any."""
        data = await self._loader.load(url, VIDEO, param, self._bytes_left)
        work = partial(read_video, data, VideoLimits(self._deadline_s), param)
        video = await self._decode(data, work)
        self._keep(video.frames.nbytes, param)
        if not with_sound:
            return video
        track = partial(read_track, data, self._sound_limits, param)
        recording = await self._loader.decode(track)
        return (
            video if recording is None else replace(video, sound=self._build_part(recording, param))
        )

    @property
    def work_s(self) -> float:
        """Seconds within which all files must be loaded and decoded."""
        return self._limits.work_s

    @property
    def _accepted(self) -> str:
        return f"up to {self._limits.max_audio_s:g} s are accepted in all messages together"

    @property
    def _bytes_left(self) -> int:
        return self._limits.max_bytes - self._file_bytes

    async def _decode_audio(self, data: bytes, param: str) -> AudioPart:
        work = partial(read_sound, data, self._sound_limits, param)
        recording = await self._decode(data, work)
        if not len(recording.samples):
            raise InvalidAudio(f"{param} contains no sound: it is 0 s long", param)
        return self._build_part(recording, param)

    @property
    def _sound_limits(self) -> SoundLimits:
        left_s = self._limits.max_audio_s - self._audio_s
        return SoundLimits(left_s, left_s, self._accepted, self._deadline_s)

    def _build_part(self, recording: Recording, param: str) -> AudioPart:
        self._audio_s += recording.seconds
        self._keep(recording.samples.nbytes, param)
        return AudioPart(recording.samples, recording.sample_rate)

    async def _decode_image(self, data: bytes, max_pixels: int, param: str) -> Pixels:
        pixels = await self._decode(data, partial(read_image, data, max_pixels, param))
        self._keep(pixels.nbytes, param)
        return pixels

    async def _decode(self, data: bytes, work: Callable[[], T]) -> T:
        self._file_bytes += len(data)
        return await self._loader.decode(work)

    def _keep(self, size: int, param: str) -> None:
        if self.decoded_bytes + size > self._limits.max_decoded_bytes:
            limit = self._limits.max_decoded_bytes >> 20
            raise PayloadTooLarge(
                f"{param}: the request's media take more than {limit} MiB when decoded; "
                "send fewer or smaller files",
                param,
            )
        if self._reader.held_bytes + size > self._limits.max_held_bytes:
            raise Overloaded("the media of other requests take up all memory set aside for media")
        self.decoded_bytes += size
        self._reader.held_bytes += size


def _widen(samples: NDArray[np.int16]) -> NDArray[np.float32]:
    """[N] samples of 16 bit -> [N, 1] in -1..1."""
    return samples.astype(np.float32)[:, None] / _FULL_SCALE
