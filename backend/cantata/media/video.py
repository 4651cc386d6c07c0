"""Decodes some frames of a video. This blocks: call it through `MediaLoader.decode`.

No header is trusted: the length is that of the packets' times, the frames are counted while they
are decoded, and each is scaled down before the next one is decoded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import av
import numpy as np
from av.video.reformatter import Interpolation
from numpy.typing import NDArray

from cantata.contract.data.chat import VideoPart
from cantata.contract.data.errors import InvalidVideo
from cantata.media.containers import VIDEO_FORMATS, opened, recognize_video
from cantata.media.images import fitting

FRAMES_PER_S = 2.0
MIN_FRAMES, MAX_FRAMES = 4, 128
"""Fewest and most frames, both even: models join frames in pairs."""
MAX_S = 600.0
MAX_FRAME_PIXELS = 768 * 28 * 28
"""Most pixels of a kept frame; a larger one is scaled down."""
MAX_TOTAL_PIXELS = 24_576 * 28 * 28
"""Most pixels of all kept frames together."""
MAX_DECODED_PIXELS = 9_000_000
"""Most pixels of a frame when it is decoded; 3840 x 2160 fits."""
MAX_PACKETS = 200_000

_MAX_MISSING_PACKETS = 8
_DECODERS = ("h264", "hevc", "libdav1d", "av1", "vp8", "libvpx", "vp9", "libvpx-vp9", "mpeg4")


@dataclass(frozen=True, slots=True)
class VideoLimits:
    deadline_s: float
    """Time by `time.monotonic` after which decoding is an error."""
    max_frames: int = MAX_FRAMES
    """Even, at least `MIN_FRAMES`."""


def read_video(data: bytes, limits: VideoLimits, param: str) -> VideoPart:
    """Frames at even distances, about `FRAMES_PER_S`, including the first and the last. A video
    with fewer than `MIN_FRAMES` has some of its frames repeated.

    Args:
        data: a whole file, in one of `VIDEO_FORMATS`.
        limits: how much of it is read.
        param: the field that it came in, for error messages.

    Raises:
        InvalidVideo: not a video, damaged, too long or too large.
    """
    container = recognize_video(data, param)
    with opened(data, container, _DECODERS, param, InvalidVideo, VIDEO_FORMATS) as source:
        return _read(source, limits, param)


def _read(source: av.container.InputContainer, limits: VideoLimits, param: str) -> VideoPart:
    stream = _find_stream(source, param)
    times, seconds = _read_times(source, stream, param)
    wanted = _count_wanted(seconds, limits.max_frames)
    places = np.linspace(0, len(times) - 1, wanted).round().astype(np.int64)
    kept = _keep_frames(
        _iterate_frames(source, stream, limits.deadline_s, param), [times[i] for i in places]
    )
    if not kept:
        raise InvalidVideo(f"{param} contains no picture", param)
    # Frames that were announced and do not come: the last one stands.
    kept += kept[-1:] * (wanted - len(kept))
    if any(frame.shape != kept[0].shape for frame in kept):
        raise InvalidVideo(f"{param} changes its size in the middle", param)
    return VideoPart(np.stack(kept), wanted / seconds if seconds else FRAMES_PER_S)


def _find_stream(source: av.container.InputContainer, param: str) -> av.VideoStream:
    if not source.streams.video:
        raise InvalidVideo(f"{param} contains no picture", param)
    stream = source.streams.video[0]
    codec = stream.codec_context
    if codec is None or codec.name not in _DECODERS:
        raise InvalidVideo(
            f"{param} has an unsupported codec; valid: H.264, H.265, AV1, VP8, VP9, MPEG-4",
            param,
        )
    _check_size(codec.width, codec.height, param)
    # The stages need the other cores; the limit holds for sizes that change in the middle.
    codec.thread_count = 1
    codec.options = {"max_pixels": str(MAX_DECODED_PIXELS)}
    return stream


def _read_times(
    source: av.container.InputContainer, stream: av.VideoStream, param: str
) -> tuple[list[int], float]:
    """When each frame is shown, in order, in the stream's time unit, and the length of the video in
    seconds. Nothing is decoded."""
    times: set[int] = set()
    for number, packet in enumerate(source.demux(stream)):
        if number > MAX_PACKETS:
            raise InvalidVideo(f"{param} has more than {MAX_PACKETS} frames", param)
        if packet.pts is not None:
            times.add(packet.pts)
    source.seek(0)
    if not times or stream.time_base is None:
        raise InvalidVideo(f"{param} contains no picture", param)
    shown = sorted(times)
    span_s = float((shown[-1] - shown[0]) * stream.time_base)
    # The last frame is shown as long as the others are on average.
    seconds = span_s * len(shown) / (len(shown) - 1) if len(shown) > 1 else 0.0
    if seconds > MAX_S:
        raise InvalidVideo(
            f"{param} is {seconds:.0f} s long; up to {MAX_S:g} s are accepted", param
        )
    return shown, seconds


def _count_wanted(seconds: float, max_frames: int) -> int:
    """How many frames are wanted: an even number."""
    frames = min(max(seconds * FRAMES_PER_S, MIN_FRAMES), max_frames)
    return 2 * math.floor(frames / 2)


def _keep_frames(frames: Iterator[av.VideoFrame], wanted: list[int]) -> list[NDArray[np.uint8]]:
    """For each wanted time, the first frame that is not earlier, scaled down. Fewer frames if the
    video ends early."""
    kept: list[NDArray[np.uint8]] = []
    max_pixels = min(MAX_FRAME_PIXELS, MAX_TOTAL_PIXELS // len(wanted))
    for frame in frames:
        pixels: NDArray[np.uint8] | None = None
        while len(kept) < len(wanted) and frame.pts is not None and frame.pts >= wanted[len(kept)]:
            if pixels is None:
                pixels = _convert_pixels(frame, max_pixels)
            kept.append(pixels)
        if len(kept) == len(wanted):
            break
    return kept


def _iterate_frames(
    source: av.container.InputContainer, stream: av.VideoStream, deadline_s: float, param: str
) -> Iterator[av.VideoFrame]:
    damaged = 0
    for packet in source.demux(stream):
        if time.monotonic() > deadline_s:
            raise InvalidVideo(f"{param} takes too long to decode; send a shorter one", param)
        try:
            frames = packet.decode()
        except av.InvalidDataError:
            damaged += 1
            if damaged > _MAX_MISSING_PACKETS:
                raise
            continue
        for frame in frames:
            _check_size(frame.width, frame.height, param)
            yield frame


def _convert_pixels(frame: av.VideoFrame, max_pixels: int) -> NDArray[np.uint8]:
    """[H, W, 3] RGB, upright."""
    width, height = fitting(frame.width, frame.height, max_pixels)
    rgb = frame.reformat(width, height, "rgb24", interpolation=Interpolation.BICUBIC)
    pixels = np.asarray(rgb.to_ndarray(), np.uint8)
    return np.rot90(pixels, frame.rotation // 90) if frame.rotation % 90 == 0 else pixels


def _check_size(width: int, height: int, param: str) -> None:
    if not 0 < width * height <= MAX_DECODED_PIXELS:
        raise InvalidVideo(
            f"{param} has frames of {width} x {height} pixels; valid: up to "
            f"{MAX_DECODED_PIXELS // 1_000_000} million",
            param,
        )
