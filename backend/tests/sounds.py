"""Sound files as clients send them: valid ones, and malicious ones."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import av
import numpy as np
import soundfile
from numpy.typing import NDArray

Samples = NDArray[np.float32]


def humming(seconds: float, rate: int = 24_000, channels: int = 1, peak: float = 0.3) -> Samples:
    """[N, C]: a tone of 220 Hz in every channel."""
    times = np.arange(round(seconds * rate)) / rate
    tone = (peak * np.sin(2 * np.pi * 220 * times)).astype(np.float32)
    return np.stack([tone] * channels, axis=1)


def sound_file(
    samples: Samples, rate: int = 24_000, kind: str = "WAV", subtype: str | None = None
) -> bytes:
    """A file that libsndfile writes."""
    file = io.BytesIO()
    channels = samples.shape[1]
    with soundfile.SoundFile(file, "w", rate, channels, subtype, format=kind) as output:
        # In pieces: libsndfile's Vorbis needs stack in proportion to the size of each write.
        for start in range(0, len(samples), rate):
            output.write(samples[start : start + rate])
    return file.getvalue()


def wav(seconds: float = 2.0, rate: int = 24_000, channels: int = 1, peak: float = 0.3) -> bytes:
    """A WAV file of a tone."""
    return sound_file(humming(seconds, rate, channels, peak), rate)


def muxed(container: str, codec: str, seconds: float = 2.0) -> bytes:
    """A file that FFmpeg writes, mono at 48 kHz; ("webm", "libopus") is what browsers record."""
    rate = 48_000
    samples = (humming(seconds, rate)[:, 0] * 32767).astype(np.int16)
    frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
    frame.sample_rate = rate
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=rate, layout="mono")
        assert isinstance(stream, av.AudioStream)
        fitting = av.AudioResampler(
            stream.format, stream.layout, rate, frame_size=stream.frame_size or None
        )
        for piece in [*fitting.resample(frame), *fitting.resample(None)]:
            output.mux(stream.encode(piece))
        output.mux(stream.encode(None))
    return file.getvalue()


def with_header(file: bytes, offset: int, layout: str, value: int) -> bytes:
    """A file with one field of its header overwritten."""
    data = bytearray(file)
    struct.pack_into(layout, data, offset, value)
    return bytes(data)


def with_picture(flac: bytes, side: int) -> bytes:
    """A FLAC file with a PNG cover, small as a file, of side * side pixels when unpacked."""
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(side * 3 + 1)) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    )
    media_type = b"image/png"
    block = struct.pack(">II", 3, len(media_type)) + media_type + struct.pack(">IIIII", *[0] * 5)
    block += struct.pack(">I", len(png)) + png
    stream_info = bytes([flac[4] & 0x7F]) + flac[5:42]
    return b"fLaC" + stream_info + b"\x06" + struct.pack(">I", len(block))[1:] + block + flac[42:]


def data_url(file: bytes, media_type: str = "audio/wav") -> str:
    """A file as clients send it in JSON."""
    return f"data:{media_type};base64,{base64.b64encode(file).decode()}"
