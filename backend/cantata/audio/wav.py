"""WAV headers: for sound whose length is not known yet, and once it is."""

from __future__ import annotations

import struct

from cantata.audio.pcm import BYTES_PER_SAMPLE

_UNKNOWN_SIZE = 0xFFFFFFFF
_RIFF_SIZE_AT, _DATA_SIZE_AT, _HEADER_BYTES = 4, 40, 44
_PCM = 1
_FMT_CHUNK_BYTES = 16


def streaming_header(sample_rate: int, channels: int) -> bytes:
    """The 44 bytes in front of s16le samples that follow until the stream ends.

    Both sizes say "unknown" by the largest value, which players and libraries read as "up to the
    end of the data".
    """
    block_bytes = channels * BYTES_PER_SAMPLE
    fmt = struct.pack(
        "<HHIIHH",
        _PCM,
        channels,
        sample_rate,
        sample_rate * block_bytes,
        block_bytes,
        BYTES_PER_SAMPLE * 8,
    )
    return b"".join(
        (
            struct.pack("<4sI4s", b"RIFF", _UNKNOWN_SIZE, b"WAVE"),
            struct.pack("<4sI", b"fmt ", _FMT_CHUNK_BYTES) + fmt,
            struct.pack("<4sI", b"data", _UNKNOWN_SIZE),
        )
    )


def with_sizes(header: bytes, size: int) -> bytes:
    """A `streaming_header` with the sizes of a file that is complete now and has `size` bytes."""
    known = bytearray(header)
    struct.pack_into("<I", known, _RIFF_SIZE_AT, size - 8)
    struct.pack_into("<I", known, _DATA_SIZE_AT, size - _HEADER_BYTES)
    return bytes(known)
