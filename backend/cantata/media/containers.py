"""Detects the type of a sound file or a video from its first bytes only, and opens it with the one
reader of FFmpeg that it needs.

FFmpeg never guesses: its readers include playlists, which open other files and
addresses, and pictures, which may decompress to any size.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import av

from cantata.contract.data.errors import InvalidAudio, InvalidMedia, InvalidVideo

AUDIO_FORMATS = "WAV, FLAC, Ogg (Opus, Vorbis), MP3, AAC, MP4/M4A, WebM"
VIDEO_FORMATS = "MP4, MOV, WebM, MKV"

HEAD_BYTES = 12
"""By which most containers are recognized."""
_ADTS_MASK, _ADTS_SYNC = 0xE6, 0xE0
"""Of the second byte of an MPEG frame: the sync's end, and the layer, 0 only for AAC in ADTS."""
_ID3, _ID3_HEADER_BYTES, _MAX_ID3_BYTES = b"ID3", 10, 4096
_SYNC_BYTES = 2


@dataclass(frozen=True, slots=True)
class Container:
    """The name of a reader of FFmpeg, and the media type of its files."""

    demuxer: str
    media_type: str


_WAV = Container("wav", "audio/wav")
_FLAC = Container("flac", "audio/flac")
_OGG = Container("ogg", "audio/ogg")
_MP3 = Container("mp3", "audio/mpeg")
_AAC = Container("aac", "audio/aac")
_MP4 = Container("mov", "audio/mp4")
_WEBM = Container("matroska", "audio/webm")
_MP4_VIDEO = Container("mov", "video/mp4")
_WEBM_VIDEO = Container("matroska", "video/webm")

_EBML_MAGIC = b"\x1a\x45\xdf\xa3"


def count_head_bytes(head: bytes) -> int:
    """How many of a file's first bytes are needed to recognize it.

    Args:
        head: the first `HEAD_BYTES`. If they begin a short ID3 tag, the frame behind it counts:
            it stands in front of MP3 and AAC. A long one has a picture, as MP3 has.
    """
    if not head.startswith(_ID3) or len(head) < HEAD_BYTES:
        return HEAD_BYTES
    size = 0
    for seven_bits in head[6:10]:
        size = size << 7 | seven_bits & 0x7F
    return _ID3_HEADER_BYTES + size + _SYNC_BYTES if size <= _MAX_ID3_BYTES else HEAD_BYTES


def _is_adts(frame: bytes) -> bool:
    """Whether an MPEG frame is one of AAC."""
    return frame[:1] == b"\xff" and len(frame) > 1 and frame[1] & _ADTS_MASK == _ADTS_SYNC


def recognize_audio(data: bytes, param: str) -> Container:
    """The container of a sound file. Raises InvalidAudio: it is none that can be read; names those
    that can."""
    head = data[:HEAD_BYTES]
    frame = data[count_head_bytes(head) - _SYNC_BYTES :][:_SYNC_BYTES]
    if head.startswith(_ID3) and _is_adts(frame):
        return _AAC
    if head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE":
        return _WAV
    if head[4:8] == b"ftyp":
        return _MP4
    for magic, container in (
        (b"fLaC", _FLAC),
        (b"OggS", _OGG),
        (_ID3, _MP3),
        (_EBML_MAGIC, _WEBM),
    ):
        if head.startswith(magic):
            return container
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        return _AAC if _is_adts(head) else _MP3
    raise InvalidAudio(f"{param} is not a readable sound file; valid: {AUDIO_FORMATS}", param)


def recognize_video(data: bytes, param: str) -> Container:
    """The container of a video. Only containers in which every frame has a time are accepted.
    Raises InvalidVideo: it is none that can be read; names those that can."""
    if data[4:8] == b"ftyp":
        return _MP4_VIDEO
    if data.startswith(_EBML_MAGIC):
        return _WEBM_VIDEO
    raise InvalidVideo(f"{param} is not a readable video; valid: {VIDEO_FORMATS}", param)


@contextmanager
def opened(
    data: bytes | BinaryIO,
    container: Container,
    decoders: Sequence[str],
    param: str,
    kind: type[InvalidMedia],
    valid: str,
) -> Iterator[av.container.InputContainer]:
    """Open a file for the block. Any error that FFmpeg raises inside is the client's file's fault.

    Args:
        data: the whole file, or one that is open for reading at its beginning.
        container: what its first bytes say it is.
        decoders: the only ones that FFmpeg may use.
        param: the field that it came in, for error messages, as the next two.

    Raises:
        InvalidMedia: of `kind`: the file is damaged, or not what it says it is.
    """
    options = {"codec_whitelist": ",".join(decoders), "protocol_whitelist": ""}
    try:
        with av.open(
            io.BytesIO(data) if isinstance(data, bytes) else data,
            mode="r",
            format=container.demuxer,
            container_options=options,
            metadata_errors="ignore",
        ) as source:
            yield source
    except (av.FFmpegError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "not what it says it is"
        raise kind(
            f"{param} cannot be decoded as {container.media_type} ({reason}); valid: {valid}", param
        ) from error
