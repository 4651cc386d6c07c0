"""The stores of what is kept; a new job: its document is read, its options are checked, and it is
kept."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from starlette.datastructures import UploadFile

from cantata.api.context import ApiContext
from cantata.api.jobs.body import JobBody
from cantata.api.jobs.narrator import choose_results, validate_sentence
from cantata.api.speech.verification import choose_verifier
from cantata.api.speech.voice_choice import choose_model
from cantata.contract.data.errors import (
    Forbidden,
    InvalidDocument,
    InvalidRequest,
    NotStored,
    PayloadTooLarge,
)
from cantata.documents.document import Document, find_kind, tidy_title
from cantata.jobs.batches import BatchStore
from cantata.jobs.files import FileStore
from cantata.jobs.job import Job, NewJob, SoundShape
from cantata.jobs.results import check_results
from cantata.jobs.script import write_script
from cantata.jobs.store import JobStore


def get_job_store(context: ApiContext) -> JobStore:
    """The store. Raises Forbidden: this server keeps no jobs."""
    if context.jobs is None:
        raise Forbidden("this server keeps no jobs and files; its operator can set --jobs-dir")
    return context.jobs


def get_file_store(context: ApiContext) -> FileStore:
    """The files of the store; errors as of `get_job_store`."""
    return FileStore(get_job_store(context))


def get_batch_store(context: ApiContext) -> BatchStore:
    """The batches of the store; errors as of `get_job_store`."""
    return BatchStore(get_job_store(context), get_file_store(context))


async def open_job(context: ApiContext, body: JobBody, file: UploadFile | None, owner: str) -> Job:
    """Keep a job.

    Raises:
        InvalidRequest: there is no text or too much, the document cannot be read, or an option is
            not valid.
        JobsFull: there are too many.
        StorageFailed: it cannot be written.
    """
    store = get_job_store(context)
    model = await choose_model(context, body.model, body.voice)
    if body.verify:
        choose_verifier(context)
    document = await _read(context, body, file)
    script = await asyncio.to_thread(write_script, document, tuple(body.voices))
    if not script:
        raise InvalidDocument("there is nothing to speak", "input" if file is None else "file")
    for speaker in ("", *body.voices):
        probe = replace(script[0], text="One.", speaker=speaker)
        await validate_sentence(context, model, body, probe)
    shape = SoundShape(model.sample_rate, model.channels)
    check_results(choose_results(context, body), shape)
    chosen = body.model_copy(update={"model": model.name, "input": None})
    return await store.add(
        NewJob(
            owner=owner,
            options=chosen.model_dump(mode="json", exclude_none=True),
            shape=shape,
            title=tidy_title(body.title or document.title),
            author=document.author,
            language=document.language,
            chapters=tuple(one.title for one in document.chapters),
            sentences=script,
            cover=document.cover,
        )
    )


async def _read(context: ApiContext, body: JobBody, file: UploadFile | None) -> Document:
    if (file is None) == (body.input is None):
        raise InvalidRequest("send either input, a text, or file, a document", "input")
    limit = context.settings.jobs.limits.max_source_bytes
    kind = "md" if file is None else find_kind(file.filename or "")
    if file is not None and (file.size or 0) > limit:
        raise PayloadTooLarge(f"file is larger than {limit} bytes", "file")
    source = (body.input or "") if file is None else file.file
    with tempfile.TemporaryDirectory(prefix="cantata-document-") as folder:
        path = Path(folder) / "document"
        try:
            await asyncio.to_thread(_put, source, path)
        except OSError as error:
            raise NotStored(f"the document cannot be stored: {error.strerror}") from error
        try:
            return await context.documents.read(path, kind)
        except InvalidDocument as error:
            raise InvalidDocument(error.message, "input" if file is None else "file") from None


def _put(source: str | BinaryIO, path: Path) -> None:
    with path.open("wb") as target:
        if isinstance(source, str):
            target.write(source.encode("utf-8"))
        else:
            source.seek(0)
            shutil.copyfileobj(source, target)
