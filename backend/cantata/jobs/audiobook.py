"""A book as one M4B file: AAC with chapters, a cover and tags."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet
from numpy.typing import NDArray

from cantata.audio.formats import output_format
from cantata.jobs.job import Job, SoundShape

_BLOCK_SAMPLES = 1 << 16

Pcm16 = NDArray[np.int16]
"""[N, C] samples."""
CHAPTER_GAP_S = 1.2
"""Silence between two chapters."""
MEDIA_TYPE = "audio/mp4"
_BITS_PER_CHANNEL = 64_000
_WITHOUT_PLACE = ("software", "digital_source_type")
_OPTIONS = {"movflags": "+faststart", "fflags": "+bitexact"}
"""An exact file does not name the library as what made it."""
_LAYOUTS = {1: "mono", 2: "stereo"}


def read_sound(path: Path, shape: SoundShape) -> Iterator[Pcm16]:
    """The samples of a chapter, block by block; none if nothing of it was spoken."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while data := file.read(_BLOCK_SAMPLES * shape.channels * 2):
            yield np.frombuffer(data, "<i2").reshape(-1, shape.channels)


def write_audiobook(
    job: Job, sounds: Sequence[Path], path: Path, cover: bytes, tags: Sequence[tuple[str, str]]
) -> None:
    """Write the file; blocks.

    Args:
        job: with its chapters, of one or two channels.
        cover: a JPEG; empty: none.
    """
    shape = job.shape
    options = {**_OPTIONS, "brand": "M4B "}
    with av.open(str(path), "w", format="mp4", container_options=options) as book:
        voice = _add_voice(book, shape)
        picture = _add_cover(book, cover) if cover else None
        book.metadata.update({**_join_tags(tags), **_describe(job)})
        book.set_chapters(
            [
                {
                    "id": number,
                    "start": start,
                    "end": end,
                    "time_base": Fraction(1, shape.sample_rate),
                    "metadata": {"title": title or f"Chapter {number + 1}"},
                }
                for number, (start, end, title) in enumerate(place_chapters(job))
            ]
        )
        if picture is not None:
            book.mux(picture)
        _encode(book, voice, _join(job, sounds), shape)


def write_chapter_sound(
    shape: SoundShape, sound: Path, path: Path, tags: Sequence[tuple[str, str]]
) -> None:
    """Write the samples of a chapter as AAC in MP4, without silence behind it; blocks."""
    options = {**_OPTIONS, "brand": "M4A "}
    with av.open(str(path), "w", format="mp4", container_options=options) as file:
        voice = _add_voice(file, shape)
        file.metadata.update(_join_tags(tags))
        _encode(file, voice, read_sound(sound, shape), shape)


def _add_voice(file: OutputContainer, shape: SoundShape) -> AudioStream:
    rate = output_format("aac", shape.sample_rate, shape.channels, None).sample_rate
    voice = file.add_stream("aac", rate=rate, layout=_LAYOUTS[shape.channels])
    voice.bit_rate = _BITS_PER_CHANNEL * shape.channels
    return voice


def _encode(
    file: OutputContainer, voice: AudioStream, blocks: Iterable[Pcm16], shape: SoundShape
) -> None:
    layout = _LAYOUTS[shape.channels]
    resampler = av.AudioResampler(format="fltp", layout=layout, rate=voice.rate)
    place = 0
    for block in blocks:
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(block.reshape(1, -1)), format="s16", layout=layout
        )
        frame.sample_rate = shape.sample_rate
        frame.pts, frame.time_base = place, Fraction(1, shape.sample_rate)
        place += len(block)
        for ready in resampler.resample(frame):
            file.mux(voice.encode(ready))
    for ready in resampler.resample(None):
        file.mux(voice.encode(ready))
    file.mux(voice.encode(None))


def _join_tags(tags: Sequence[tuple[str, str]]) -> dict[str, str]:
    """With what these files have no place for in their comment."""
    told = dict(tags)
    more = [f'{name}="{told.pop(name)}"' for name in _WITHOUT_PLACE if name in told]
    return {**told, "comment": "; ".join([*filter(None, [told.get("comment")]), *more])}


def place_chapters(job: Job) -> Iterator[tuple[int, int, str]]:
    """First sample, end and title of each chapter in the whole book."""
    gap, start = round(CHAPTER_GAP_S * job.shape.sample_rate), 0
    for chapter in job.chapters:
        end = start + chapter.samples + gap
        yield start, end, chapter.title
        start = end


def _join(job: Job, sounds: Sequence[Path]) -> Iterator[Pcm16]:
    gap = np.zeros((round(CHAPTER_GAP_S * job.shape.sample_rate), job.shape.channels), np.int16)
    for sound in sounds:
        yield from read_sound(sound, job.shape)
        yield gap


def _describe(job: Job) -> dict[str, str]:
    told = {
        "title": job.title,
        "album": job.title,
        "artist": job.author,
        "album_artist": job.author,
        "genre": "Audiobook",
        "language": job.language,
    }
    return {name: value for name, value in told.items() if value}


def _add_cover(book: OutputContainer, cover: bytes) -> Packet[Any]:
    """Add a stream for the picture; returns what it consists of."""
    with av.open(io.BytesIO(cover), "r", format="jpeg_pipe") as source:
        picture = source.streams.video[0]
        stream = book.add_stream_from_template(picture)
        stream.disposition = av.stream.Disposition.attached_pic
        packet = next(packet for packet in source.demux(picture) if packet.size)
    packet.stream = stream
    packet.pts = packet.dts = 0
    return packet
