"""`cantata say`: a text into a file, onto standard output or onto the sound device."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from cantata.audio import sinks
from cantata.audio.captions import FORMATS, CaptionError, check_captions, write_captions
from cantata.audio.sinks import DeviceSink, Sink, StreamSink
from cantata.cli.files import (
    STANDARD_STREAM,
    FileError,
    check_ending,
    check_output_is_piped,
    explain_write_errors,
)
from cantata.cli.progress import SpokenProgress
from cantata.cli.say_options import SayArguments
from cantata.cli.say_sources import SpokenSound, open_source
from cantata.cli.sound_files import ExplainedSink, check_sound_file, open_sound_file
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata.media.provenance import make_sound_tags
from cantata.utils.atomic_file import write_whole


@dataclass(frozen=True, slots=True)
class _Poured:
    seconds: float
    ttfp_s: float
    waited_s: float
    """Seconds waited for all of the sound."""


async def say(options: SayArguments, console: Console) -> None:
    """Speak, and tell on the console how it went. Raises CantataError: the request cannot be
    served; raised before a model is loaded where possible."""
    form = _check_targets(options)
    with _point_to_books(options.text):
        async with open_source(options, console) as sound:
            with (
                _open_sink(options, form, sound) as sink,
                SpokenProgress(options.text, sound.words, console) as progress,
            ):
                poured = await _play_chunks(sound, sink, progress)
    for path in options.timestamps:
        _write_times(path, options, sound)
    _report(options, poured, sound, console)


@contextmanager
def _point_to_books(text: str) -> Iterator[None]:
    """Tell who is refused because of the text's length what speaks longer ones."""
    try:
        yield
    except CantataError as error:
        if f"{len(text)} characters" not in error.message:
            raise
        told = f'{error.message}; "cantata book FILE" speaks longer ones'
        raise InvalidRequest(told, "input") from error


def _check_targets(options: SayArguments) -> str:
    """The sound's format; "" for the sound device. Checked before anything is loaded."""
    for path in options.timestamps:
        check_ending(path, FORMATS)
        check_captions(path)
    if options.out is None:
        sinks.check_device()
        return ""
    if options.out == STANDARD_STREAM:
        check_output_is_piped()
        return options.form or "wav"
    return check_sound_file(options.out, options.form)


def _open_sink(
    options: SayArguments, form: str, sound: SpokenSound
) -> AbstractContextManager[Sink]:
    out, rate, channels = options.out, sound.sample_rate, sound.channels
    if out is None:
        return DeviceSink(rate, channels)
    tags = make_sound_tags(options.model)
    if out == STANDARD_STREAM:
        stream = StreamSink(sys.stdout.buffer, form, rate, channels, tags)
        return ExplainedSink(stream, partial(explain_write_errors, STANDARD_STREAM))
    return open_sound_file(out, form, rate, channels, tags)


def _write_times(path: Path, options: SayArguments, sound: SpokenSound) -> None:
    with explain_write_errors(path), write_whole(path) as unfinished:
        try:
            write_captions(unfinished, options.text, sound.words, path.suffix)
        except CaptionError as error:  # it names the unfinished file
            raise FileError(error.message.replace(str(unfinished), str(path))) from error


async def _play_chunks(sound: SpokenSound, sink: Sink, progress: SpokenProgress) -> _Poured:
    samples, ttfp_s, waited_s = 0, 0.0, 0.0
    waiting_since = sound.asked_at
    async for pcm in sound.pcm:
        waited_s += time.monotonic() - waiting_since
        ttfp_s = ttfp_s or waited_s
        samples += len(pcm)
        writing = asyncio.ensure_future(asyncio.to_thread(sink.write, pcm))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing])  # the sink must not be closed beneath the thread
            raise
        progress.advance(samples / sound.sample_rate)
        waiting_since = time.monotonic()
    return _Poured(samples / sound.sample_rate, ttfp_s, waited_s)


def _report(options: SayArguments, poured: _Poured, sound: SpokenSound, console: Console) -> None:
    where = f" in {options.out}" if options.out and options.out != STANDARD_STREAM else ""
    raw = f", s16le, {sound.sample_rate} Hz, {sound.channels} channel(s)"
    console.print(
        f"{poured.seconds:.2f} s of sound{where}{raw if options.form == 'pcm' else ''}: "
        f"first after {poured.ttfp_s * 1000:.0f} ms (TTFP), "
        f"RTF {poured.waited_s / max(poured.seconds, 1e-9):.3f}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
