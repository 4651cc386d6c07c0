"""Decodes sound files to samples.

No header is trusted: sound is counted while it is decoded, and decoding stops at the limits. The
functions block: the event loop calls them through `MediaLoader.decode`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

import av
import numpy as np
import soxr
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidAudio, InvalidVideo
from cantata.media.containers import (
    AUDIO_FORMATS,
    HEAD_BYTES,
    VIDEO_FORMATS,
    count_head_bytes,
    opened,
    recognize_audio,
    recognize_video,
)

Samples = NDArray[np.float32]

MAX_KEPT_RATE = 48_000
"""Hz. Sound at a higher rate is resampled to this; any other keeps its rate."""
MAX_KEPT_CHANNELS = 2
"""Sound with more channels becomes mono."""
MIN_RATE, MAX_RATE = 8_000, 192_000
MAX_CHANNELS = 8
MAX_WORK_S = 30.0
"""Most seconds of decoding. A valid file takes a small part of it; one that takes longer is
malicious."""

BLOCK_S = 4.0
"""Seconds of sound that `stream_mono` returns at a time."""
_MAX_WORK_SHARE = 0.2
"""Seconds of decoding that each second of a long file may take in addition."""
_MAX_MISSING_PACKETS = 8
_DECODERS = (
    *("pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le"),
    *("pcm_alaw", "pcm_mulaw", "flac", "alac", "aac", "mp3", "mp3float"),
    *("vorbis", "libvorbis", "opus", "libopus"),
)
"""The only decoders that are opened. FFmpeg gets the list, too, so that it ignores cover
pictures."""


@dataclass(frozen=True, slots=True)
class SoundLimits:
    max_s: float
    """Seconds; a longer file is rejected."""
    kept_s: float
    """Seconds that are kept, from the beginning."""
    valid: str
    """What is accepted, in words, for the error message."""
    deadline_s: float
    """Time by `time.monotonic` after which decoding is an error."""


@dataclass(frozen=True, slots=True)
class Recording:
    samples: Samples
    """[N, C] in -1..1: the part that is kept, in one or two channels."""
    sample_rate: int
    """Hz, 8,000 to 48,000."""
    seconds: float
    """Length of the whole file."""


def read_sound(data: bytes, limits: SoundLimits, param: str) -> Recording:
    """The sound of a whole file, in one of `AUDIO_FORMATS`.

    Args:
        limits: how much of it is read.
        param: the field that it came in, for error messages.

    Raises:
        InvalidAudio: not a sound file, damaged or too long.
    """
    container = recognize_audio(data, param)
    with opened(data, container, _DECODERS, param, InvalidAudio, AUDIO_FORMATS) as source:
        return _read(source, limits, param)


def read_track(data: bytes, limits: SoundLimits, param: str) -> Recording | None:
    """The sound of a whole video, in one of `VIDEO_FORMATS`; None if it has none.

    Args:
        limits: how much of it is read.
        param: the field that it came in, for error messages.

    Raises:
        InvalidVideo: its sound is damaged.
        InvalidAudio: it is too long, or has an unsupported codec.
    """
    container = recognize_video(data, param)
    with opened(data, container, _DECODERS, param, InvalidVideo, VIDEO_FORMATS) as source:
        recording = _read(source, limits, param) if source.streams.audio else None
    return recording if recording is not None and len(recording.samples) else None


def stream_mono(
    file: BinaryIO,
    sample_rate: int,
    max_s: float,
    param: str,
    *,
    head: bytes | None = None,
    block_s: float = BLOCK_S,
) -> Generator[NDArray[np.float32], None, None]:
    """The sound of a long file, block by block: its length costs no memory.

    Args:
        file: in one of `AUDIO_FORMATS`, open at its beginning.
        sample_rate: Hz of what is returned.
        max_s: seconds; a longer file is rejected when that is reached.
        param: the field that it came in, for error messages.
        head: the file's first `count_head_bytes`, of one that cannot go back to its beginning.
        block_s: seconds of sound returned at a time.

    Yields:
        [N] in -1..1, the mean of all channels, N about `block_s` of sound.

    Raises:
        InvalidAudio: not a sound file, damaged or too long, or it takes too much work.
    """
    if head is None:
        head = _read_head(file)
    container = recognize_audio(head, param)
    with opened(file, container, _DECODERS, param, InvalidAudio, AUDIO_FORMATS) as source:
        if not source.streams.audio:
            raise InvalidAudio(f"{param} contains no sound", param)
        yield from _join_blocks(_Mono(sample_rate, max_s, param), source, block_s, param)


def _read_head(file: BinaryIO) -> bytes:
    """What a file is recognized by; it is at its beginning, before and after."""
    head = file.read(HEAD_BYTES)
    head += file.read(count_head_bytes(head) - HEAD_BYTES)
    file.seek(0)
    return head


def measure_duration(file: BinaryIO) -> float | None:
    """Seconds of a sound file as its header says; None if it says nothing. For a progress bar: a
    header may be wrong. The file is at its beginning, before and after."""
    try:
        container = recognize_audio(_read_head(file), "file")
        with opened(file, container, _DECODERS, "file", InvalidAudio, AUDIO_FORMATS) as source:
            return None if source.duration is None else source.duration / av.time_base
    except InvalidAudio:
        return None
    finally:
        file.seek(0)


class _Mono:
    """Makes one channel at one rate of frames."""

    def __init__(self, sample_rate: int, max_s: float, param: str) -> None:
        self.sample_rate, self._max_s, self._param = sample_rate, max_s, param
        self._shape: tuple[int, int] | None = None
        self.seconds = 0.0
        """Seconds of the file so far."""

    def take(self, frame: av.AudioFrame) -> NDArray[np.float32]:
        """[N]: the samples that are certain now."""
        shape = (frame.sample_rate, frame.layout.nb_channels)
        if self._shape is None:
            self._shape = shape
            self._resample = _build_resampler(frame.sample_rate, self.sample_rate, 1)
        if shape != self._shape:
            raise InvalidAudio(
                f"{self._param} changes its sample rate or channels in the middle", self._param
            )
        self.seconds += frame.samples / frame.sample_rate
        if self.seconds > self._max_s:
            raise InvalidAudio(
                f"{self._param} is longer than {self._max_s:g} s, the most that is accepted",
                self._param,
            )
        mono = _read_samples(frame, self._param).mean(axis=1, keepdims=True)
        return self._resample(mono, False)[:, 0]

    def end(self) -> NDArray[np.float32]:
        """[N]: the rest."""
        if self._shape is None:
            return np.zeros(0, np.float32)
        return self._resample(np.zeros((0, 1), np.float32), True)[:, 0]


def _join_blocks(
    mono: _Mono, source: av.container.InputContainer, block_s: float, param: str
) -> Iterator[NDArray[np.float32]]:
    """Frames joined to blocks. Only the thread's own time counts as work: a block waits until its
    reader wants the next, and a file may still be arriving."""
    frames = _iterate_frames(source, math.inf, param)
    parts: list[NDArray[np.float32]] = []
    length, work_s = 0, 0.0
    while True:
        began_s = time.thread_time()
        frame = next(frames, None)
        parts.append(mono.end() if frame is None else mono.take(frame))
        work_s += time.thread_time() - began_s
        if work_s > MAX_WORK_S + mono.seconds * _MAX_WORK_SHARE:
            raise InvalidAudio(f"{param} takes too long to decode", param)
        length += len(parts[-1])
        if frame is None or length >= block_s * mono.sample_rate:
            yield np.clip(np.concatenate(parts), -1, 1)
            parts, length = [], 0
        if frame is None:
            return


def _read(source: av.container.InputContainer, limits: SoundLimits, param: str) -> Recording:
    if not source.streams.audio:
        raise InvalidAudio(f"{param} contains no sound", param)
    frames = _iterate_frames(source, limits.deadline_s, param)
    first = next(frames, None)
    if first is None:
        return Recording(np.zeros((0, 1), np.float32), MAX_KEPT_RATE, 0.0)
    rate, channels = first.sample_rate, first.layout.nb_channels
    kept_rate, kept_channels = min(rate, MAX_KEPT_RATE), _count_kept_channels(channels)
    resample = _build_resampler(rate, kept_rate, kept_channels)
    kept = round(limits.kept_s * kept_rate)
    # Grows in place: pieces that are joined at the end would take twice the memory.
    buffer = bytearray()
    seconds = 0.0
    for frame in chain([first], frames):
        if (frame.sample_rate, frame.layout.nb_channels) != (rate, channels):
            raise InvalidAudio(f"{param} changes its sample rate or channels in the middle", param)
        seconds += frame.samples / rate
        if seconds > limits.max_s:
            raise InvalidAudio(f"{param} is longer than {limits.max_s:g} s; {limits.valid}", param)
        samples = _read_samples(frame, param)
        if len(buffer) < kept * kept_channels * samples.itemsize:
            buffer += resample(samples, False).tobytes()
    buffer += resample(np.zeros((0, kept_channels), np.float32), True).tobytes()
    samples = np.frombuffer(buffer, np.float32).reshape(-1, kept_channels)[:kept]
    # Resampling may overshoot.
    return Recording(np.clip(samples, -1, 1, out=samples), kept_rate, seconds)


def _build_resampler(
    rate: int, kept_rate: int, channels: int
) -> Callable[[Samples, bool], Samples]:
    """A function from new samples, and whether they are the last, to samples at the kept rate."""
    if rate == kept_rate:
        return lambda samples, last: samples
    stream = soxr.ResampleStream(rate, kept_rate, channels, dtype="float32")
    return lambda samples, last: stream.resample_chunk(samples, last=last)


def _iterate_frames(
    source: av.container.InputContainer, deadline_s: float, param: str
) -> Iterator[av.AudioFrame]:
    """Decoded frames of the first audio stream, each within the limits."""
    stream = source.streams.audio[0]
    if stream.codec_context is None or stream.codec_context.name not in _DECODERS:
        raise InvalidAudio(f"{param} has an unsupported codec; valid: {AUDIO_FORMATS}", param)
    _check_shape(stream.codec_context.sample_rate, stream.codec_context.channels, param)
    damaged = 0
    for packet in source.demux(stream):
        if time.monotonic() > deadline_s:
            raise InvalidAudio(f"{param} takes too long to decode", param)
        try:
            frames = packet.decode()
        except av.InvalidDataError:
            # Streams that were cut or joined have a damaged packet or two; more is not sound.
            damaged += 1
            if damaged > _MAX_MISSING_PACKETS:
                raise
            continue
        for frame in frames:
            _check_shape(frame.sample_rate, frame.layout.nb_channels, param)
            yield frame


def _check_shape(rate: int, channels: int, param: str) -> None:
    if not MIN_RATE <= rate <= MAX_RATE:
        raise InvalidAudio(
            f"{param} has a sample rate of {rate} Hz; valid: {MIN_RATE} to {MAX_RATE}", param
        )
    if not 1 <= channels <= MAX_CHANNELS:
        raise InvalidAudio(f"{param} has {channels} channels; valid: 1 to {MAX_CHANNELS}", param)


def _read_samples(frame: av.AudioFrame, param: str) -> Samples:
    """[N, C] with full scale at 1. More channels than are kept become one, their mean."""
    channels = frame.layout.nb_channels
    samples = frame.to_ndarray()
    if not frame.format.is_planar:
        samples = samples.reshape(-1, channels).T
    scaled: NDArray[np.float32] = samples.astype(np.float32)
    if samples.dtype.kind in "iu":
        scaled /= np.float32(2 ** (8 * samples.dtype.itemsize - 1))
    if samples.dtype.kind == "u":
        scaled -= 1
    if not np.isfinite(scaled).all():
        raise InvalidAudio(f"{param} contains samples that are not numbers", param)
    clipped = np.clip(scaled, -1, 1).T
    if channels != _count_kept_channels(channels):
        clipped = clipped.mean(axis=1, keepdims=True)
    return np.ascontiguousarray(clipped, dtype=np.float32)


def _count_kept_channels(channels: int) -> int:
    return channels if channels <= MAX_KEPT_CHANNELS else 1
