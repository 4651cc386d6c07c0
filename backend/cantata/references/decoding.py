"""Untrusted sound files -> samples of a reference, in bounded time and memory.

No header is trusted: sound is counted while it is decoded, and decoding stops
at the limit. `decode` blocks: the event loop calls it through `ReferenceReader`.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import av
import numpy as np
import soxr
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidAudio
from cantata.contract.data.request import ReferenceAudio
from cantata.references.containers import FORMATS, recognise

Samples = NDArray[np.float32]

MAX_KEPT_RATE = 48_000
"""Hz; a file at a higher rate is resampled to this one, any other keeps its own."""
MAX_KEPT_CHANNELS = 2
"""A file with more becomes mono."""
MIN_S, MAX_S = 1.0, 60.0
"""Shorter and longer recordings are rejected."""
USED_S = 15.0
"""How much of a longer recording is used: its beginning."""
MIN_RATE, MAX_RATE = 8_000, 192_000
MAX_CHANNELS = 8

_MIN_SOUNDING_S = 0.5
_QUIET_DBFS = -50.0
_BLOCK_S = 0.02
_MAX_WORK_S = 30.0
"""A minute normally takes a small part of it; a file that takes longer is malicious."""
_MAX_MISSING_PACKETS = 8
_DECODERS = (
    *("pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le"),
    *("pcm_alaw", "pcm_mulaw", "flac", "alac", "aac", "mp3", "mp3float"),
    *("vorbis", "libvorbis", "opus", "libopus"),
)
"""Only these are opened. FFmpeg gets the list too, so that it ignores cover pictures."""


def decode(data: bytes, transcript: str | None, param: str) -> ReferenceAudio:
    """The first 15 s of a sound file as a reference.

    Args:
        data: a whole file, in one of `FORMATS`.
        transcript: of the recording.
        param: the field that it came in, for error messages.

    Returns:
        Samples at the file's rate and with its channels, as far as these are kept, in -1..1.

    Raises:
        InvalidAudio: not a sound file, damaged, too short, too long or too quiet; or longer than
            what is used, so that its transcript would not match.
    """
    container = recognise(data, param)
    options = {"codec_whitelist": ",".join(_DECODERS), "protocol_whitelist": ""}
    try:
        with av.open(
            io.BytesIO(data),
            mode="r",
            format=container.demuxer,
            container_options=options,
            metadata_errors="ignore",
        ) as source:
            recording = _read(source, param)
    except (av.FFmpegError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "not what it says it is"
        raise InvalidAudio(
            f"{param} cannot be decoded as {container.media_type} ({reason}); valid: {FORMATS}",
            param,
        ) from error
    return _checked(recording, transcript, param)


@dataclass(frozen=True, slots=True)
class _Recording:
    samples: Samples
    """[N, C]: the part that is used."""
    sample_rate: int
    seconds: float
    """Of the whole file."""


def _read(source: av.container.InputContainer, param: str) -> _Recording:
    """Stops with an error beyond 60 s."""
    if not source.streams.audio:
        raise InvalidAudio(f"{param} holds no sound", param)
    frames = _frames(source, param)
    first = next(frames, None)
    if first is None:
        return _Recording(np.zeros((0, 1), np.float32), MAX_KEPT_RATE, 0.0)
    rate, channels = first.sample_rate, first.layout.nb_channels
    kept_rate, kept_channels = min(rate, MAX_KEPT_RATE), _kept_channels(channels)
    resample = _resampling(rate, kept_rate, kept_channels)
    used = round(USED_S * kept_rate)
    pieces: list[Samples] = []
    length, seconds = 0, 0.0
    for frame in chain([first], frames):
        if (frame.sample_rate, frame.layout.nb_channels) != (rate, channels):
            raise InvalidAudio(f"{param} changes its sample rate or channels in the middle", param)
        seconds += frame.samples / rate
        if seconds > MAX_S:
            raise InvalidAudio(
                f"{param} is longer than {MAX_S:g} s; {MIN_S:g} to {MAX_S:g} s are accepted and "
                f"the first {USED_S:g} s used",
                param,
            )
        samples = _samples_of(frame, param)
        if length < used:
            pieces.append(resample(samples, False))
            length += len(pieces[-1])
    pieces.append(resample(np.zeros((0, kept_channels), np.float32), True))
    return _Recording(np.concatenate(pieces)[:used], kept_rate, seconds)


def _resampling(rate: int, kept_rate: int, channels: int) -> Callable[[Samples, bool], Samples]:
    """A function of new samples, and whether they are the last, that gives those at the kept
    rate."""
    if rate == kept_rate:
        return lambda samples, last: samples
    stream = soxr.ResampleStream(rate, kept_rate, channels, dtype="float32")
    return lambda samples, last: stream.resample_chunk(samples, last=last)


def _frames(source: av.container.InputContainer, param: str) -> Iterator[av.AudioFrame]:
    """Decoded frames of the first audio stream, each within the limits."""
    deadline = time.monotonic() + _MAX_WORK_S
    stream = source.streams.audio[0]
    if stream.codec_context is None or stream.codec_context.name not in _DECODERS:
        raise InvalidAudio(f"{param} has a codec that is not read; valid: {FORMATS}", param)
    _check_shape(stream.codec_context.sample_rate, stream.codec_context.channels, param)
    damaged = 0
    for packet in source.demux(stream):
        if time.monotonic() > deadline:
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
            f"{param} has {rate} samples per second; valid: {MIN_RATE} to {MAX_RATE}", param
        )
    if not 1 <= channels <= MAX_CHANNELS:
        raise InvalidAudio(f"{param} has {channels} channels; valid: 1 to {MAX_CHANNELS}", param)


def _samples_of(frame: av.AudioFrame, param: str) -> Samples:
    """[N, C], full scale at 1; one channel, the mean, where more than two would be kept."""
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
        raise InvalidAudio(f"{param} holds samples that are not numbers", param)
    clipped = np.clip(scaled, -1, 1).T
    if channels != _kept_channels(channels):
        clipped = clipped.mean(axis=1, keepdims=True)
    return np.ascontiguousarray(clipped, dtype=np.float32)


def _kept_channels(channels: int) -> int:
    return channels if channels <= MAX_KEPT_CHANNELS else 1


def _checked(recording: _Recording, transcript: str | None, param: str) -> ReferenceAudio:
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
    samples = np.clip(recording.samples, -1, 1)  # resampling may overshoot
    reference = ReferenceAudio(samples, recording.sample_rate, transcript)
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
