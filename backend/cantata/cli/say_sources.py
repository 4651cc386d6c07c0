"""Where the sound of `cantata say` comes from.

A server that was named makes it, or the model loaded here: in this process where the model can do
that, which takes hardly longer than importing torch, or else in stage processes.
"""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cantata.audio.pcm import to_s16
from cantata.audio.sinks import Pcm
from cantata.cli.files import read_file
from cantata.cli.progress import show_loading
from cantata.cli.say_options import SayArguments
from cantata.cli.server_address import ask_server
from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpeechChunk, SpokenWord

if TYPE_CHECKING:
    from cantata.contract.data.request import ReferenceAudio
    from cantata.pipeline.local import LocalModel

CHUNKS_AHEAD = 256
"""That are made before the listener takes them: of 80 ms, some 20 s."""


@dataclass(frozen=True, slots=True)
class SpokenSound:
    sample_rate: int
    channels: int
    asked_at: float
    """Time of the request, by `time.monotonic`."""
    pcm: AsyncIterator[Pcm]
    words: list[SpokenWord]
    """Grows while `pcm` is read."""


def open_source(
    options: SayArguments, console: Console
) -> AbstractAsyncContextManager[SpokenSound]:
    """The sound, from a server or made here. Raises CantataError: the request cannot be served."""
    if options.server:
        return _from_server(options, options.server, console)
    from cantata.pipeline.local import find_local_model, find_model

    if options.model is None and options.voice is not None:
        options = replace(options, model=find_model(options.voice))
    local = find_local_model(options.model)
    return _from_stages(options, console) if local is None else _from_here(options, local, console)


@asynccontextmanager
async def _from_here(
    options: SayArguments, local: LocalModel, console: Console
) -> AsyncIterator[SpokenSound]:
    request = _build_request(options, options.voice or "", local.capabilities, console)
    parts = local.plan(request)
    with show_loading(console):
        is_loaded = await asyncio.to_thread(local.load)
    if not is_loaded:
        async with _from_stages(options, console) as sound:
            yield sound
        return
    asked_at = time.monotonic()
    async with aclosing(_make_ahead(local.speak(parts))) as chunks:
        words: list[SpokenWord] = []
        pcm = _collect_words(chunks, words)
        yield SpokenSound(local.sample_rate, local.channels, asked_at, pcm, words)


@asynccontextmanager
async def _from_stages(options: SayArguments, console: Console) -> AsyncIterator[SpokenSound]:
    """Load the model in stage processes, and end them afterwards."""
    from cantata.pipeline.plan import plan_service
    from cantata.pipeline.service import create_service

    service = create_service(plan_service(options.model))
    model = service.get_model(service.default_model)
    asked = _build_request(options, model.get_voice(options.voice).id, model.capabilities, console)
    request = replace(asked, batch=options.out is not None)
    with show_loading(console):
        try:
            await service.start()
        except BaseException:
            await service.stop()
            raise
    try:
        asked_at = time.monotonic()
        async with model.run(request) as utterance:
            words: list[SpokenWord] = []
            pcm = _collect_words(aiter(utterance), words)
            yield SpokenSound(model.sample_rate, model.channels, asked_at, pcm, words)
    finally:
        await service.stop()


@asynccontextmanager
async def _from_server(
    options: SayArguments, server: str, console: Console
) -> AsyncIterator[SpokenSound]:
    from cantata.client import KEY_VARIABLE, stream_speech

    named = {
        "voice": options.voice,
        "seed": options.seed,
        "model": options.model,
        "instructions": options.instructions,
        "ref_audio": None if options.ref_audio is None else _as_url(options.ref_audio),
        "ref_text": options.ref_text,
    }
    fields: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    if options.timestamps or console.is_terminal:
        fields["timestamps"] = True  # the progress bar reads them, too
    asked_at = time.monotonic()
    key = os.environ.get(KEY_VARIABLE)
    with ask_server(server):
        async with stream_speech(
            server, options.text, api_key=key, speed=options.speed, **fields
        ) as stream:
            for ignored in stream.ignored:
                _tell_ignored(ignored, options, console)
            yield SpokenSound(
                stream.sample_rate, stream.channels, asked_at, stream.pcm, stream.words
            )


def _as_url(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "audio/wav"
    return f"data:{kind};base64,{base64.b64encode(read_file(path)).decode()}"


def _build_request(
    options: SayArguments, voice: str, capabilities: Capabilities, console: Console
) -> SpeechRequest:
    if options.instructions is not None and not capabilities.instructions:
        _tell_ignored("instructions", options, console)
    return SpeechRequest(
        options.text,
        voice,
        speed=options.speed,
        seed=options.seed,
        instructions=options.instructions if capabilities.instructions else None,
        reference=_read_reference(options, capabilities),
    )


def _read_reference(options: SayArguments, capabilities: Capabilities) -> ReferenceAudio | None:
    if options.ref_audio is None:
        return None
    if not capabilities.references:
        raise InvalidRequest("this model cannot follow a recording; leave out --ref-audio")
    from cantata.references.decoding import decode

    return decode(read_file(options.ref_audio), options.ref_text, "--ref-audio")


def _tell_ignored(field: str, options: SayArguments, console: Console) -> None:
    model = f"model {options.model!r}" if options.model else "this model"
    console.print(f"--{field} has no effect: {model} does not take it", highlight=False)


async def _collect_words(
    chunks: AsyncIterator[SpeechChunk], words: list[SpokenWord]
) -> AsyncIterator[Pcm]:
    async for chunk in chunks:
        words.extend(chunk.words)
        yield to_s16(chunk.samples)


async def _make_ahead(
    chunks: AsyncIterator[SpeechChunk],
) -> AsyncGenerator[SpeechChunk, None]:
    """Makes the next chunks while the listener still plays the ones before."""
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
