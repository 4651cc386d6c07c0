"""`cantata transcribe`: what is said in files, in folders or on standard input.

A server that was named transcribes, or the model is loaded here: in this process if it is one
recognition stage, or else in stage processes.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from cantata.api.transcription.answers import VerboseTranscription
from cantata.api.transcription.body import SentFile, TranscriptionBody
from cantata.api.transcription.parts import build_request, transcribe_file
from cantata.api.transcription.result import FinishedTranscription
from cantata.cli.files import FileError, WrongCall
from cantata.cli.listener import open_listener
from cantata.cli.server_address import ask_server
from cantata.cli.transcribe_options import (
    OutputForm,
    TranscribeArguments,
    choose_form,
    choose_target,
    write_out,
)
from cantata.client.transcription import FinalTranscript, TextDelta
from cantata.contract.transcription_service import TranscriptionModel
from cantata.media.sound import measure_duration
from cantata.speech_input.recordings import RecordingProgress, RecordingReader

_SOUND_SUFFIXES = frozenset(
    {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aac", ".m4a", ".mp4", ".webm", ".mov"}
)
STDIN = Path("-")

Event = tuple[str, float] | VerboseTranscription
"""New text and the seconds that it reaches to, or the whole transcript."""


@dataclass(frozen=True, slots=True)
class _Job:
    source: Path
    target: Path | None
    """None: standard output."""


async def transcribe(options: TranscribeArguments, console: Console) -> None:
    """Transcribe each recording in turn. Raises CantataError: a recording cannot be read, or the
    options are not valid; raised before a model is loaded where possible."""
    form = choose_form(options)
    jobs = _plan(options, form)
    async with _open_transcriber(options) as run:
        for job in jobs:
            await _transcribe_one(run, job, form, console)


async def _transcribe_one(run: _Transcriber, job: _Job, form: OutputForm, console: Console) -> None:
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}")
    with (
        _open(job.source) as file,
        Progress(
            *columns,
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as bar,
    ):
        seconds = measure_duration(file)
        task = bar.add_task(job.source.name, total=seconds, done="")
        async with aclosing(run(file, job.source.name)) as events:
            async for event in events:
                if isinstance(event, VerboseTranscription):
                    write_out(event, job.target, form)
                    break
                text, end_s = event
                bar.update(task, completed=end_s, done=text[-40:])
    if job.target is not None:
        console.print(f"{job.source} -> {job.target}", highlight=False)


def _plan(options: TranscribeArguments, form: OutputForm) -> list[_Job]:
    """Every recording, and its target.

    Raises:
        WrongCall: one does not exist, a folder has none, or several have the same target.
        FileError: the target's folder does not exist.
    """
    sources = [found for path in options.files for found in _list_recordings(path)]
    is_single = len(sources) == 1 and not any(path.is_dir() for path in options.files)
    if is_single:
        return [_Job(sources[0], choose_target(options.out, sources[0].stem, form))]
    if options.out is not None and not options.out.is_dir():
        raise WrongCall(f"{options.out}: several recordings need a folder that exists")
    jobs = [_Job(one, (options.out or one.parent) / f"{one.stem}.{form}") for one in sources]
    targets = [job.target for job in jobs]
    if (twice := next((one for one in targets if targets.count(one) > 1), None)) is not None:
        raise WrongCall(f"{twice}: several recordings would be written there")
    return jobs


def _list_recordings(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.suffix.lower() in _SOUND_SUFFIXES)
        if not found:
            valid = ", ".join(sorted(_SOUND_SUFFIXES))
            raise WrongCall(f"{path}: the folder has no recordings ({valid})")
        return found
    if path != STDIN and not path.is_file():
        raise WrongCall(f"{path}: there is no such file")
    return [path]


def _open(path: Path) -> BinaryIO:
    if path == STDIN:
        return io.BytesIO(sys.stdin.buffer.read())
    try:
        return path.open("rb")
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from error


class _Transcriber(Protocol):
    """Transcribes one recording after the other, here or on a server."""

    def __call__(self, file: BinaryIO, name: str) -> AsyncGenerator[Event, None]:
        """What is heard in a recording, and last its whole transcript."""
        ...


@asynccontextmanager
async def _open_transcriber(options: TranscribeArguments) -> AsyncIterator[_Transcriber]:
    if options.server is not None:
        yield _OnServer(options, options.server)
        return
    reader = RecordingReader()
    try:
        async with open_listener(options) as model:
            yield _Here(options, model, reader)
    finally:
        reader.close()


class _Here:
    def __init__(
        self, options: TranscribeArguments, model: TranscriptionModel, reader: RecordingReader
    ) -> None:
        self._options, self._model, self._reader = options, model, reader

    async def __call__(self, file: BinaryIO, name: str) -> AsyncGenerator[Event, None]:
        options, progress = self._options, RecordingProgress()
        body = TranscriptionBody(language=options.language, prompt=options.prompt)
        request = build_request(body, translate=options.translate)
        parts = []
        sent = SentFile(file, name)
        transcribing = transcribe_file(self._reader, self._model, sent, body, request, progress)
        async with aclosing(transcribing):
            async for part in transcribing:
                parts.append(part)
                yield part.transcript.text, part.start_s + part.transcript.seconds
        result = FinishedTranscription(
            tuple(parts), progress.seconds, options.language, translate=options.translate
        )
        yield result.verbose(words=True, segments=True)


class _OnServer:
    def __init__(self, options: TranscribeArguments, server: str) -> None:
        self._options, self._server = options, server

    async def __call__(self, file: BinaryIO, name: str) -> AsyncGenerator[Event, None]:
        from cantata.client import KEY_VARIABLE
        from cantata.client.transcription import transcribe_file as ask

        options = self._options
        sent = {"model": options.model, "language": options.language, "prompt": options.prompt}
        fields = {key: value for key, value in sent.items() if value}
        answer = ask(
            self._server,
            file,
            name,
            fields,
            translate=options.translate,
            api_key=os.environ.get(KEY_VARIABLE),
        )
        with ask_server(self._server):
            async with aclosing(answer):
                async for event in answer:
                    yield _to_event(event, translate=options.translate)


def _to_event(event: TextDelta | FinalTranscript, *, translate: bool) -> Event:
    if isinstance(event, TextDelta):
        return event.text, event.end_s
    fields = event.fields
    return VerboseTranscription.model_validate(
        {
            "task": "translate" if translate else "transcribe",
            "duration": fields["usage"]["seconds"],
            **{key: value for key, value in fields.items() if key != "type"},
        }
    )
