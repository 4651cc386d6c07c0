"""A book as one M4B file: AAC with chapters, a cover and tags."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.container import OutputContainer
from av.packet import Packet

from cantata.audio.formats import output_format
from cantata.jobs.job import Job
from cantata.jobs.sound import Pcm16, read_sound

CHAPTER_GAP_S = 1.2
"""Silence between two chapters."""
MEDIA_TYPE = "audio/mp4"
_BITS_PER_CHANNEL = 64_000
_LAYOUTS = {1: "mono", 2: "stereo"}


def write_audiobook(
    job: Job, sounds: Sequence[Path], path: Path, cover: bytes, tags: Sequence[tuple[str, str]]
) -> None:
    """Write the file; blocks.

    Args:
        job: with its chapters, of one or two channels.
        sounds: the chapters' samples.
        path: where.
        cover: a JPEG; empty: none.
        tags: that say who made it.
    """
    shape = job.shape
    rate = output_format("aac", shape.sample_rate, shape.channels, None).sample_rate
    layout = _LAYOUTS[shape.channels]
    options = {"movflags": "+faststart", "brand": "M4B "}
    with av.open(str(path), "w", format="mp4", container_options=options) as book:
        voice = book.add_stream("aac", rate=rate, layout=layout)
        voice.bit_rate = _BITS_PER_CHANNEL * shape.channels
        picture = _add_cover(book, cover) if cover else None
        book.metadata.update({**dict(tags), **_describe(job)})
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
        resampler = av.AudioResampler(format="fltp", layout=layout, rate=rate)
        place = 0
        for block in _join(job, sounds):
            frame = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(block.reshape(1, -1)), format="s16", layout=layout
            )
            frame.sample_rate = shape.sample_rate
            frame.pts, frame.time_base = place, Fraction(1, shape.sample_rate)
            place += len(block)
            for ready in resampler.resample(frame):
                book.mux(voice.encode(ready))
        for ready in resampler.resample(None):
            book.mux(voice.encode(ready))
        book.mux(voice.encode(None))


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
