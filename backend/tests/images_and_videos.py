"""Pictures and videos as clients send them, made as they are needed."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
Samples = NDArray[np.float32]


def quarters(height: int = 40, width: int = 60) -> Pixels:
    """[H, W, 3]: red, green, blue and white quarters, so that every turn shows."""
    pixels = np.zeros((height, width, 3), np.uint8)
    half, middle = height // 2, width // 2
    pixels[:half, :middle] = (255, 0, 0)
    pixels[:half, middle:] = (0, 255, 0)
    pixels[half:, :middle] = (0, 0, 255)
    pixels[half:, middle:] = (255, 255, 255)
    return pixels


def image_file(pixels: Any, kind: str = "PNG", **options: Any) -> bytes:
    """A file that Pillow writes."""
    file = io.BytesIO()
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(file, kind, **options)
    return file.getvalue()


def png_bomb(side: int) -> bytes:
    """A small PNG file that announces, and holds, this many pixels in height and width."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    row = bytes(1 + (side + 7) // 8)
    data = b"".join(packer.compress(row * 64) for _ in range(side // 64)) + packer.flush()
    chunks = chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def webp_bomb(side: int) -> bytes:
    """A small WebP file that announces this many pixels in height and width."""
    size = (side - 1) | (side - 1) << 14
    data = b"\x2f" + struct.pack("<I", size) + bytes(59)
    chunk = b"WEBPVP8L" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunk)) + chunk


def get_grey(number: int, frames: int) -> int:
    """The grey of a video's frame: brighter from frame to frame."""
    return 20 + round(200 * number / max(1, frames - 1))


@contextmanager
def own_scheduling() -> Iterator[None]:
    """WHY: SVT-AV1's encoder makes its caller a real-time thread, if it may, and leaves it so. All
    that this process starts later would starve the others, or wait for them."""
    policy, settings = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, settings)


def video_file(
    seconds: float,
    rate: int = 10,
    size: tuple[int, int] = (64, 48),
    codec: str = "libx264",
    container: str = "mp4",
    pixels: Pixels | None = None,
    sound: tuple[str, Samples] | None = None,
) -> bytes:
    """A video whose frames are each of one grey, or all these pixels.

    Args:
        seconds: its length.
        rate: frames per second.
        size: width and height.
        codec: FFmpeg's encoder.
        container: FFmpeg's muxer.
        pixels: [H, W, 3] of every frame.
        sound: FFmpeg's encoder, and [N, 1] at 48 kHz.
    """
    file = io.BytesIO()
    frames = round(seconds * rate)
    with own_scheduling(), av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=rate)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = size
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.codec_context.thread_count = 1
        track = None if sound is None else output.add_stream(sound[0], rate=48_000)
        for number in range(frames):
            grey = get_grey(number, frames)
            shown = np.full((size[1], size[0], 3), grey, np.uint8) if pixels is None else pixels
            output.mux(stream.encode(av.VideoFrame.from_ndarray(shown, format="rgb24")))
        output.mux(stream.encode(None))
        if sound is not None:
            assert isinstance(track, av.AudioStream)
            heard = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(sound[1].T), format="fltp", layout="mono"
            )
            heard.sample_rate = 48_000
            output.mux(track.encode(heard))
            output.mux(track.encode(None))
    return file.getvalue()
