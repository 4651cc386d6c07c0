"""Jobs, as clients see them."""

from __future__ import annotations

from typing import Literal

from cantata.api.schemas import ErrorDetail, WireModel
from cantata.contract.data.errors import InvalidRequest
from cantata.jobs.job import Job, JobStatus

Status = Literal["queued", "speaking", "writing", "completed", "failed", "cancelled"]


class JobChapterObject(WireModel):
    """A chapter, as far as it is spoken."""

    number: int
    """From 1."""
    title: str
    sentences: int
    spoken: int
    seconds: float


class JobFileObject(WireModel):
    """A result; GET /v1/jobs/{id}/files/{name} sends it."""

    name: str
    content_type: str
    bytes: int


class JobVerification(WireModel):
    """What was heard of the sentences that are spoken, where `verify` asked for it."""

    words: int
    missing: int
    """Words of the text that were not heard."""
    extra: int
    """Words that were heard and are not in the text."""


class JobObject(WireModel):
    """A kept job; `chapters` and `files` only where one is asked for."""

    object: Literal["job"] = "job"
    id: str
    status: Status
    created_at: int
    """Unix time, as the next two."""
    ended_at: int | None
    expires_at: int | None
    """When it will be deleted; null until it has ended."""
    title: str
    author: str
    model: str
    sentences: int
    spoken: int
    """Sentences; those that were skipped count."""
    skipped: int
    """Sentences that the model cannot speak."""
    seconds: float
    """Of sound so far."""
    verification: JobVerification | None = None
    error: ErrorDetail | None
    """Why it failed."""
    chapters: list[JobChapterObject] | None = None
    files: list[JobFileObject] | None = None


class JobList(WireModel):
    """GET /v1/jobs; the newest first."""

    object: Literal["list"] = "list"
    data: list[JobObject]


class DeletedJob(WireModel):
    """The answer to DELETE /v1/jobs/{id}."""

    object: Literal["job.deleted"] = "job.deleted"
    id: str
    deleted: Literal[True] = True


def describe_job(job: Job, *, whole: bool = True) -> JobObject:
    """A job; `whole`: with chapters and files."""
    failed = None
    if job.status is JobStatus.FAILED:
        failed = ErrorDetail(
            message=job.error, type=_find_type(job.error_code), code=job.error_code
        )
    verification = None
    if job.options.get("verify"):
        verification = JobVerification(
            words=job.words_verified, missing=job.words_missing, extra=job.words_extra
        )
    chapters = [
        JobChapterObject(
            number=one.number + 1,
            title=one.title,
            sentences=one.sentences,
            spoken=one.spoken,
            seconds=round(one.samples / job.shape.sample_rate, 3),
        )
        for one in job.chapters
    ]
    files = [
        JobFileObject(name=one.name, content_type=one.media_type, bytes=one.size)
        for one in job.files
    ]
    return JobObject(
        id=job.id,
        status=job.status.value,
        created_at=int(job.created_at),
        ended_at=None if job.ended_at is None else int(job.ended_at),
        expires_at=None if job.expires_at is None else int(job.expires_at),
        title=job.title,
        author=job.author,
        model=str(job.options["model"]),
        sentences=job.sentences,
        spoken=job.spoken,
        skipped=job.skipped,
        seconds=round(job.seconds, 3),
        verification=verification,
        error=failed,
        chapters=chapters if whole else None,
        files=files if whole else None,
    )


def _find_type(code: str) -> str:
    is_clients = code == InvalidRequest.code or code.endswith(("_not_found", "_exceeded"))
    return "invalid_request_error" if is_clients else "server_error"
