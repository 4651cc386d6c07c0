"""`cantata book`: a document as an audiobook, spoken here, sentence by sentence.

What is spoken is kept in the user's cache until the book is written, so the same command goes on
after whatever ended it. The code is the one that speaks a server's jobs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from rich.console import Console

from cantata.cli.files import WrongCall, explain_write_errors
from cantata.contract.data.errors import CantataError, InvalidLexicon, InvalidRequest
from cantata.contract.data.request import LexiconEntry
from cantata.documents.document import Document, find_kind
from cantata.documents.reader import DocumentReader
from cantata.jobs.job import Job, JobLimits, NewJob, SoundShape
from cantata.jobs.results import READ_ALONG, WHOLE, WHOLE_BOOK, ResultOptions, check_results
from cantata.jobs.script import write_script
from cantata.jobs.speaking import Narrator, speak_job
from cantata.jobs.store import JobStore
from cantata.lexicons.pls import read_pls
from cantata.utils.atomic_file import write_whole

if TYPE_CHECKING:
    from cantata.contract.service import SpeechModel

_KEPT_S = 30 * 86_400.0
"""How long a book that nobody goes on with is kept."""


@dataclass(frozen=True, slots=True)
class BookArguments:
    file: Path
    out: Path
    """A file for `m4b` and `epub`, else a folder."""
    form: str
    captions: str | None = None
    voice: str | None = None
    speakers: Mapping[str, str] | None = None
    """Voices by names of speakers."""
    speed: float = 1.0
    seed: int = 0
    title: str | None = None
    lexicons: tuple[Path, ...] = ()
    model: str | None = None

    @property
    def how(self) -> dict[str, Any]:
        """What the sound and the files depend on besides the document, in JSON."""
        chosen = {name: value for name, value in asdict(self).items() if name not in _ELSEWHERE}
        lexicons = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.lexicons]
        return {**chosen, "lexicons": lexicons}


_ELSEWHERE = ("file", "out", "lexicons")


async def make_book(options: BookArguments, console: Console) -> None:
    """Speak a book, or the rest of it, and write it. Raises CantataError: the document cannot be
    read, or not be spoken."""
    from cantata.cli.book_narrator import BookNarrator

    kind = find_kind(options.file.name)
    _check_target(options)
    entries = await asyncio.to_thread(_read_lexicons, options)
    folder = await asyncio.to_thread(_find_folder, options)
    store = JobStore(folder, JobLimits())
    try:
        kept = await store.list_all("") if store.exists else []
        document = None if kept else await _read(options, kind)
        async with _serve_model(options, console) as model:
            if document is None:
                job = await store.find(kept[0].id)
            else:
                job = await store.add(await asyncio.to_thread(_plan, options, document, model))
            begun, asked_at = job.seconds, time.monotonic()
            if 0 < job.spoken < job.sentences:
                console.print(
                    f"going on at sentence {job.spoken + 1} of {job.sentences}", highlight=False
                )
            narrator = BookNarrator(options, store, model, entries)
            await _speak(store, job, narrator, console)
        spent_s = time.monotonic() - asked_at
        job = await store.find(job.id)
        await asyncio.to_thread(_put_files, store, job, options.out)
        await asyncio.to_thread(_report, options, job, begun, spent_s, console)
    finally:
        await store.close()
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _check_target(options: BookArguments) -> None:
    """Reject a place that cannot be written before anything is loaded."""
    if not options.out.absolute().parent.is_dir():
        raise InvalidRequest(f"{options.out}: there is no folder {options.out.parent}")
    if options.form not in WHOLE and options.out.exists() and not options.out.is_dir():
        raise WrongCall(f"{options.out} is no folder; {options.form} has a file per chapter")
    if options.out.exists() and options.out.samefile(options.file):
        raise WrongCall(f"{options.out} is the document itself; name another file with -o")


def _read_lexicons(options: BookArguments) -> tuple[LexiconEntry, ...]:
    """The entries of all of them. Raises InvalidLexicon: one of them is none; says which."""
    entries = list[LexiconEntry]()
    for path in options.lexicons:
        try:
            entries += read_pls(path.read_bytes())
        except OSError as error:
            raise InvalidRequest(f"{path}: cannot be read ({error.strerror})") from error
        except InvalidLexicon as error:
            raise InvalidLexicon(f"{path}: {error.message}", error.param) from None
    return tuple(entries)


def _find_folder(options: BookArguments) -> Path:
    """Where this very book is kept meanwhile; forgets those that were left long ago."""
    books = platformdirs.user_cache_path("cantata") / "books"
    with suppress(OSError):
        for left in books.iterdir():
            if time.time() - left.stat().st_mtime > _KEPT_S:
                shutil.rmtree(left, ignore_errors=True)
    try:
        digest = hashlib.sha256(options.file.read_bytes())
        digest.update(json.dumps(options.how, sort_keys=True).encode())
    except OSError as error:
        raise InvalidRequest(f"{options.file}: cannot be read ({error})") from error
    return books / digest.hexdigest()[:32]


@asynccontextmanager
async def _serve_model(options: BookArguments, console: Console) -> AsyncIterator[SpeechModel]:
    """The model in stage processes of its own, for the time of the block."""
    from cantata.cli.progress import show_loading
    from cantata.pipeline.local import find_model
    from cantata.pipeline.plan import plan_service
    from cantata.pipeline.service import create_service

    name = options.model
    if name is None and options.voice is not None:
        name = find_model(options.voice)
    service = create_service(plan_service(name))
    model = service.get_model(service.default_model)
    for voice in (options.voice, *(options.speakers or {}).values()):
        model.get_voice(voice)
    try:
        with show_loading(console):
            await service.start()
        yield model
    finally:
        await service.stop()


async def _read(options: BookArguments, kind: str) -> Document:
    path = await asyncio.to_thread(options.file.absolute)
    return await DocumentReader().read(path, kind)


def _plan(options: BookArguments, document: Document, model: SpeechModel) -> NewJob:
    """The job of a document. Raises InvalidRequest: the format cannot have the model's sound."""
    shape = SoundShape(model.sample_rate, model.channels)
    check_results(ResultOptions(options.form, captions=options.captions), shape)
    return NewJob(
        owner="",
        options={"model": model.name},
        shape=shape,
        title=options.title or document.title or options.file.stem,
        author=document.author,
        language=document.language,
        chapters=tuple(one.title for one in document.chapters),
        sentences=write_script(document, tuple(options.speakers or {})),
        cover=document.cover,
    )


async def _speak(store: JobStore, job: Job, narrator: Narrator, console: Console) -> None:
    from cantata.cli.progress import follow_book

    if job.status.is_final:
        return  # only the files were not put in place
    showing = asyncio.create_task(follow_book(store, job, console))
    try:
        await speak_job(store, narrator, job.id)
    finally:
        showing.cancel()
        await asyncio.wait([showing])


def _put_files(store: JobStore, job: Job, out: Path) -> None:
    """Copy the results to where they are wanted, each whole or not at all."""
    whole = tuple(f".{form}" for form in WHOLE)
    if not any(one.name.endswith(whole) for one in job.files):
        with explain_write_errors(out):
            out.mkdir(exist_ok=True)
    for one in job.files:
        source = store.find_results(job.id) / one.name
        target = out / one.name if out.is_dir() else out.with_suffix(source.suffix)
        if source.suffix in whole and not out.is_dir():
            target = out
        with explain_write_errors(target), write_whole(target) as unfinished:
            shutil.copyfile(source, unfinished)


def _report(
    options: BookArguments, job: Job, begun_s: float, spent_s: float, console: Console
) -> None:
    made_s = job.seconds - begun_s
    rtf = f": {spent_s:.0f} s, RTF {spent_s / made_s:.3f}" if made_s else ""
    left_out = f", {_count(job.skipped, 'sentence')} left out" if job.skipped else ""
    chapters = _count(len(job.chapters), "chapter")
    console.print(
        f"{job.seconds:.0f} s of sound in {chapters} in {options.out}{left_out}{rtf}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def read_speakers(written: list[str]) -> dict[str, str]:
    """Voices by speakers' names, of `NAME=VOICE`. Raises InvalidRequest: one is not written so."""
    speakers: dict[str, str] = {}
    for one in written:
        name, equals, voice = (part.strip() for part in one.partition("="))
        if not (name and equals and voice):
            raise InvalidRequest(f"--speaker {one!r}: write NAME=VOICE, such as Alice=ruby")
        speakers[name] = voice
    return speakers


_ENDINGS = {".m4b": WHOLE_BOOK, ".m4a": WHOLE_BOOK, ".epub": READ_ALONG}
_ENDINGS_OF_CHAPTERS = frozenset((".mp3", ".flac", ".opus", ".aac", ".wav", ".ogg", ".mp4"))
"""Who names a book so wants a file, and would find a folder."""


def choose_output(file: Path, out: Path | None, form: str | None) -> tuple[Path, str]:
    """Where the book goes, and in which format. Raises CantataError: the name and the format do not
    fit."""
    if out is None:
        form = form or WHOLE_BOOK
        ending = f".{form}" if form in WHOLE else ""
        if file.suffix.lower() == ending:
            raise CantataError(f"{file} is the document; name another file with -o")
        return file.with_suffix(ending), form
    named = _ENDINGS.get(out.suffix.lower())
    if named is not None:
        if form not in (None, named):
            told = f"is {form}" if form in WHOLE else "has a file per chapter; name a folder"
            raise CantataError(f"{out}: the name says {named}, and the format {told}")
        return out, named
    if out.suffix.lower() in _ENDINGS_OF_CHAPTERS and not out.is_dir():
        raise CantataError(
            f"{out}: a book is one file as .m4b or .epub: -o {out.with_suffix('.m4b')}; for a file "
            f"per chapter, name a folder, and the format with --format"
        )
    if form in WHOLE:
        raise CantataError(f"{out}: the name of an {form} ends with .{form}")
    return out, form or "mp3"
