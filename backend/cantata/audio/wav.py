"""WAV headers: for sound whose length is not known yet, and once it is."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from cantata.audio.pcm import BYTES_PER_SAMPLE

_UNKNOWN_SIZE = 0xFFFFFFFF
_RIFF_SIZE_AT = 4
_SIZE_BYTES = 4
INFO_NAMES = {"comment": "ICMT", "software": "ISFT", "digital_source_type": "ISRC"}
"""Names of tags in a RIFF file's INFO list (Multimedia Programming Interface 1.0)."""
_PCM = 1
_FMT_CHUNK_BYTES = 16


def streaming_header(
    sample_rate: int, channels: int, tags: Sequence[tuple[str, str]] = ()
) -> bytes:
    """What stands in front of s16le samples that follow until the stream ends: 44 bytes without
    tags; tags stand between the format and the samples, since nothing can follow those.

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
            _info_list(tags) if tags else b"",
            struct.pack("<4sI", b"data", _UNKNOWN_SIZE),
        )
    )


def _info_list(tags: Sequence[tuple[str, str]]) -> bytes:
    """A chunk of tags, those of `INFO_NAMES`. Texts end with a zero; chunks have even sizes."""
    chunks = [b"INFO"]
    for name, value in tags:
        text = value.encode() + b"\0"
        padding = b"\0" * (len(text) % 2)
        chunks.append(struct.pack("<4sI", INFO_NAMES[name].encode(), len(text)) + text + padding)
    listed = b"".join(chunks)
    return struct.pack("<4sI", b"LIST", len(listed)) + listed


def with_sizes(header: bytes, size: int) -> bytes:
    """A `streaming_header` with the sizes of a file that is complete now and has `size` bytes."""
    known = bytearray(header)
    struct.pack_into("<I", known, _RIFF_SIZE_AT, size - 8)
    struct.pack_into("<I", known, len(header) - _SIZE_BYTES, size - len(header))
    return bytes(known)
