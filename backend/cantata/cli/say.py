"""`cantata say`: a text into a file or onto the sound device.

The sound comes from a server that was named, or from the model loaded here: in this process where
the model can do that, which takes hardly longer than importing torch, or else from stage processes.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cantata.audio import sinks
from cantata.audio.captions import check_captions, write_captions
from cantata.audio.pcm import to_s16
from cantata.audio.sinks import DeviceSink, FileSink, Pcm, Sink
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpeechChunk, SpokenWord

if TYPE_CHECKING:
    from cantata.pipeline.local import LocalModel

CHUNKS_AHEAD = 256
"""That are made before the listener takes them: of 80 ms, some 20 s."""


@dataclass(frozen=True, slots=True)
class SayArguments:
    """The command's options."""

    text: str
    out: Path | None
    """None: the sound device."""
    timestamps: Path | None
    voice: str | None
    speed: float
    seed: int | None
    model: str | None
    server: str | None


@dataclass(frozen=True, slots=True)
class _Sound:
    sample_rate: int
    channels: int
    asked_at: float
    """By `time.monotonic`."""
    pcm: AsyncIterator[Pcm]
    words: list[SpokenWord]
    """Grows while `pcm` is read."""


async def say(options: SayArguments, console: Console) -> None:
    """Speak, and tell on the console how it went.

    Raises:
        CantataError: the request cannot be served; raised before a model is loaded where possible.
    """
    # Before anything is loaded: whether the sound can go anywhere.
    if options.out is None:
        sinks.check_device()
    else:
        sinks.check_file(options.out)
    if options.timestamps is not None:
        check_captions(options.timestamps)
    async with _source(options, console) as sound:
        rate, channels = sound.sample_rate, sound.channels
        sink: Sink
        with (
            FileSink(options.out, rate, channels)
            if options.out
            else DeviceSink(rate, channels) as sink
        ):
            samples, ttfp_s, waited_s = await _pour(sound, sink)
    if options.timestamps is not None:
        write_captions(options.timestamps, options.text, sound.words)
    duration_s = samples / rate
    where = f" in {options.out}" if options.out else ""
    console.print(
        f"{duration_s:.2f} s of sound{where}: first after {ttfp_s * 1000:.0f} ms (TTFP), "
        f"RTF {waited_s / max(duration_s, 1e-9):.3f}",
        highlight=False,
    )


def _source(options: SayArguments, console: Console) -> AbstractAsyncContextManager[_Sound]:
    if options.server:
        return _from_server(options, options.server)
    from cantata.pipeline.local import find_model, local_model

    if options.model is None and options.voice is not None:
        options = replace(options, model=find_model(options.voice))
    local = local_model(options.model)
    return _from_stages(options, console) if local is None else _from_here(options, local, console)


async def _pour(sound: _Sound, sink: Sink) -> tuple[int, float, float]:
    """Samples, seconds to the first of them, and seconds spent waiting for all of them."""
    samples, ttfp_s, waited_s = 0, 0.0, 0.0
    waiting_since = sound.asked_at
    async for pcm in sound.pcm:
        waited_s += time.monotonic() - waiting_since
        ttfp_s = ttfp_s or waited_s
        samples += len(pcm)
        await asyncio.to_thread(sink.write, pcm)
        waiting_since = time.monotonic()
    return samples, ttfp_s, waited_s


@asynccontextmanager
async def _from_here(
    options: SayArguments, local: LocalModel, console: Console
) -> AsyncIterator[_Sound]:
    """Load the model in this process."""
    parts = local.plan(_request(options, options.voice or ""))
    with _progress(console):
        is_loaded = await asyncio.to_thread(local.load)
    if not is_loaded:
        async with _from_stages(options, console) as sound:
            yield sound
        return
    asked_at = time.monotonic()
    async with aclosing(_made_ahead(local.speak(parts))) as chunks:
        words: list[SpokenWord] = []
        yield _Sound(local.sample_rate, local.channels, asked_at, _heard(chunks, words), words)


@asynccontextmanager
async def _from_stages(options: SayArguments, console: Console) -> AsyncIterator[_Sound]:
    """Load the model in stage processes, and end them afterwards."""
    from cantata.pipeline.plan import plan_service
    from cantata.pipeline.service import create_service

    service = create_service(plan_service(options.model))
    model = service.model(service.default_model)
    voice = model.voice(options.voice).id
    with _progress(console):
        try:
            await service.start()
        except BaseException:
            await service.stop()
            raise
    try:
        asked_at = time.monotonic()
        request = _request(options, voice)
        async with model.speak(request, batch=options.out is not None) as utterance:
            words: list[SpokenWord] = []
            pcm = _heard(aiter(utterance), words)
            yield _Sound(model.sample_rate, model.channels, asked_at, pcm, words)
    finally:
        await service.stop()


@asynccontextmanager
async def _from_server(options: SayArguments, server: str) -> AsyncIterator[_Sound]:
    """Ask a running server."""
    import httpx

    from cantata.client import KEY_VARIABLE, ServerError, stream_speech

    named = {"voice": options.voice, "seed": options.seed, "model": options.model}
    fields: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    if options.timestamps is not None:
        fields["timestamps"] = True
    asked_at = time.monotonic()
    try:
        async with stream_speech(
            server,
            options.text,
            api_key=os.environ.get(KEY_VARIABLE),
            speed=options.speed,
            **fields,
        ) as stream:
            yield _Sound(stream.sample_rate, stream.channels, asked_at, stream.pcm, stream.words)
    except (httpx.TransportError, httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise ServerError(f"{server}: {error}") from error


def _request(options: SayArguments, voice: str) -> SpeechRequest:
    return SpeechRequest(options.text, voice, speed=options.speed, seed=options.seed)


async def _heard(chunks: AsyncIterator[SpeechChunk], words: list[SpokenWord]) -> AsyncIterator[Pcm]:
    async for chunk in chunks:
        words.extend(chunk.words)
        yield to_s16(chunk.samples)


async def _made_ahead(
    chunks: AsyncIterator[SpeechChunk],
) -> AsyncGenerator[SpeechChunk, None]:
    """The same chunks, made while the listener still plays the ones before."""
    queue: asyncio.Queue[SpeechChunk | Exception | None] = asyncio.Queue(CHUNKS_AHEAD)

    async def make() -> None:
        try:
            async for chunk in chunks:
                await queue.put(chunk)
            await queue.put(None)
        except Exception as error:  # raised where the sound is waited for
            await queue.put(error)

    making = asyncio.create_task(make(), name="say:make")
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        making.cancel()
        await asyncio.wait([making])


def _progress(console: Console) -> Any:
    """A line that tells what takes so long, for as long as it does."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True)
    progress.add_task("loading the voice")
    return progress
