"""Compressed formats by FFmpeg's libraries (PyAV), configured for low latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import av
import numpy as np
from numpy.typing import NDArray

from cantata.audio.pcm import INFO_NAMES, to_s16, with_sizes

_LAYOUTS = {1: "mono", 2: "stereo"}
_FRAMES_PER_S = 50
"""Frames per second of codecs with a configurable frame length."""
_MAX_BITS_PER_SAMPLE = 4
_FLAC_HEAD = b"fLaC\x00\x00\x00\x22"
"""In front of STREAMINFO, which other blocks follow (RFC 9639, section 8)."""


@dataclass(frozen=True, slots=True)
class CodecSettings:
    """FFmpeg's settings for one format."""

    container: str
    encoder: str
    max_bit_rate: int | None = None
    """Most bits per second and channel; less at low sample rates. None: lossless."""
    container_options: Mapping[str, str] = field(default_factory=dict)
    encoder_options: Mapping[str, str] = field(default_factory=dict)
    tag_options: Mapping[str, str] | None = None
    """More options of the container, for files with tags. None: it has no place for them."""
    tag_names: Mapping[str, str] = field(default_factory=dict)
    """The container's own names of tags, where FFmpeg knows no common ones."""
    short_frames: bool = False
    """Use frames of 20 ms; FFmpeg's default is 50 to 100 ms."""


CODECS: Mapping[str, CodecSettings] = MappingProxyType(
    {
        "mp3": CodecSettings(
            "mp3",
            "libmp3lame",
            64_000,
            # A Xing frame would be written once the length is known, which is too late.
            container_options={"write_xing": "0", "id3v2_version": "0"},
            tag_options={"id3v2_version": "3"},
            # Without the reservoir a frame needs no later one and leaves as soon as it is full.
            encoder_options={"reservoir": "0", "compression_level": "5"},
        ),
        "opus": CodecSettings(
            "ogg",
            "libopus",
            48_000,
            # Microseconds: a page for every packet.
            container_options={"page_duration": "20000"},
            tag_options={},
            encoder_options={"frame_duration": "20", "compression_level": "5"},
        ),
        "aac": CodecSettings(
            "adts",
            "aac",
            64_000,
            # In front of the first frame, as in HTTP Live Streaming's packed audio.
            tag_options={"write_id3v2": "1"},
            # At this bit rate it is closer to the original than FFmpeg's own choice, for less.
            encoder_options={"aac_coder": "fast"},
        ),
        "flac": CodecSettings(
            "flac",
            "flac",
            # FFmpeg leaves 8 KiB free for tags that never come.
            container_options={"metadata_header_padding": "0"},
            tag_options={},
            short_frames=True,
        ),
        # ITU-T G.711, for telephones: bare, and behind a WAV header.
        "mulaw": CodecSettings("mulaw", "pcm_mulaw"),
        "alaw": CodecSettings("alaw", "pcm_alaw"),
        "mulaw_wav": CodecSettings("wav", "pcm_mulaw", tag_options={}, tag_names=INFO_NAMES),
        "alaw_wav": CodecSettings("wav", "pcm_alaw", tag_options={}, tag_names=INFO_NAMES),
    }
)


class CompressedEncoder:
    """Encodes one compressed file.

    Args:
        sample_rate: Hz, one that the codec takes.
        channels: 1 or 2.
        bit_rate: per second, of lossy codecs; None is the codec's own.
        tags: names and values, for containers that take them while streaming.
    """

    def __init__(
        self,
        codec: CodecSettings,
        sample_rate: int,
        channels: int,
        bit_rate: int | None = None,
        tags: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._written = _Written()
        self._head = b""
        self._container = av.open(
            self._written,
            "w",
            format=codec.container,
            # No random numbers in it: the same samples make the same file.
            container_options={
                "flush_packets": "1",
                "fflags": "+bitexact",
                **codec.container_options,
                **((codec.tag_options or {}) if tags else {}),
            },
        )
        if codec.tag_options is not None:
            named = {codec.tag_names.get(name, name): value for name, value in tags}
            self._container.metadata.update(named)
        options = dict(codec.encoder_options)
        if codec.short_frames:
            options["frame_size"] = str(sample_rate // _FRAMES_PER_S)
        self._sample_rate = sample_rate
        self._layout = _LAYOUTS[channels]
        stream = self._container.add_stream(
            codec.encoder, rate=sample_rate, layout=self._layout, options=options
        )
        assert isinstance(stream, av.AudioStream)
        self._stream = stream
        if codec.max_bit_rate is not None:
            per_channel = min(codec.max_bit_rate, _MAX_BITS_PER_SAMPLE * sample_rate)
            self._stream.bit_rate = bit_rate or channels * per_channel
        self._container.start_encoding()
        self._wav_head = self._written.look() if codec.container == "wav" else b""

    def feed(self, samples: NDArray[np.float32]) -> bytes:
        """Encode [N, C] samples; returns the packets that are full."""
        if len(samples):
            frame = av.AudioFrame.from_ndarray(
                to_s16(samples).reshape(1, -1), format="s16", layout=self._layout
            )
            frame.sample_rate = self._sample_rate
            self._container.mux(self._stream.encode(frame))
        return self._written.take()

    def finish(self) -> bytes:
        self._container.mux(self._stream.encode(None))
        if self._stream.codec_context.name == "flac":
            # FFmpeg knows it at the end, but writes it only into a file that it can seek.
            self._head = _FLAC_HEAD + bytes(self._stream.codec_context.extradata or b"")
        self._container.close()
        return self._written.take()

    def encode_head(self, size: int) -> bytes:
        """What a whole file begins with: of FLAC, the number of samples, their MD5 and so on; of
        WAV, its lengths."""
        return with_sizes(self._wav_head, size) if self._wav_head else self._head

    def close(self) -> None:
        """Free codec and buffers. What FFmpeg still writes for an aborted file is dropped."""
        self._container.close()
        self._written.take()


class _Written:
    """The output of a file without seek: what FFmpeg has written and nobody has taken yet."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes) -> int:
        self._data += data
        return len(data)

    def look(self) -> bytes:
        return bytes(self._data)

    def take(self) -> bytes:
        consumed = bytes(self._data)
        self._data.clear()
        return consumed
