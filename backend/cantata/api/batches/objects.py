"""Files and batches, as clients see them: OpenAI's objects."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field, computed_field

from cantata.api.schemas import Name, Text, WireModel
from cantata.jobs.batch import BatchStatus, KeptBatch, KeptFile, TokenUsage

Purpose = Literal["batch", "batch_output", "user_data"]
MIN_EXPIRES_S, MAX_EXPIRES_S = 3_600, 2_592_000
MAX_METADATA = 16

Endpoint = Literal[
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/chat/completions",
    "/v1/images/edits",
    "/v1/images/generations",
    "/v1/responses",
]
"""Routes whose requests may be lines of a batch."""


class ExpiresAfter(WireModel):
    """How long a file is kept."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, Field(ge=MIN_EXPIRES_S, le=MAX_EXPIRES_S)]


class ListedObject(WireModel):
    """What is listed."""

    id: str


class FileObject(ListedObject):
    """A kept file."""

    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    """Unix time, as the next."""
    expires_at: int
    filename: str
    purpose: Purpose
    status: Literal["processed"] = "processed"


Listed = TypeVar("Listed", bound=ListedObject)


class PagedList(WireModel, Generic[Listed]):
    """A page of a list."""

    object: Literal["list"] = "list"
    data: list[Listed]
    has_more: bool

    @computed_field  # type: ignore[prop-decorator]
    @property
    def first_id(self) -> str | None:
        """Id of the page's first object."""
        return self.data[0].id if self.data else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def last_id(self) -> str | None:
        """Id of the last one, behind which the next page begins."""
        return self.data[-1].id if self.data else None


class FileList(PagedList[FileObject]):
    """GET /v1/files."""


class DeletedFile(WireModel):
    """The answer to DELETE /v1/files/{file_id}."""

    object: Literal["file"] = "file"
    id: str
    deleted: Literal[True] = True


class CreateBatchBody(WireModel):
    """POST /v1/batches."""

    input_file_id: Name
    """Of a file with the purpose `batch`."""
    endpoint: Endpoint
    completion_window: Literal["24h"]
    metadata: (
        Annotated[
            dict[
                Annotated[Text, Field(max_length=64)],
                Annotated[Text, Field(max_length=512)],
            ],
            Field(max_length=MAX_METADATA),
        ]
        | None
    ) = None
    output_expires_after: ExpiresAfter | None = None


class BatchProblem(WireModel):
    """Why a batch's file is not valid."""

    code: str
    message: str
    line: int | None
    param: str | None


class BatchProblems(WireModel):
    """The first problems of a batch's file."""

    object: Literal["list"] = "list"
    data: list[BatchProblem]


class RequestCounts(WireModel):
    """Lines of a batch; those that its end has cut off are in `total` alone."""

    total: int
    completed: int
    failed: int


class CachedTokens(WireModel):
    """Of a batch's input."""

    cached_tokens: int


class ReasoningTokens(WireModel):
    """Of a batch's output."""

    reasoning_tokens: int


class BatchUsage(WireModel):
    """What the lines that are answered took, as their routes count it."""

    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


class BatchObject(ListedObject):
    """A kept batch. Times are Unix times."""

    object: Literal["batch"] = "batch"
    endpoint: str
    errors: BatchProblems | None
    input_file_id: str
    completion_window: Literal["24h"] = "24h"
    status: Literal[
        "validating",
        "failed",
        "in_progress",
        "finalizing",
        "completed",
        "expired",
        "cancelling",
        "cancelled",
    ]
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    expires_at: int
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: RequestCounts
    usage: BatchUsage
    metadata: dict[str, str] | None


class BatchList(PagedList[BatchObject]):
    """GET /v1/batches; the newest first."""


def describe_file(file: KeptFile) -> FileObject:
    return FileObject(
        id=file.id,
        bytes=file.size,
        created_at=int(file.created_at),
        expires_at=int(file.expires_at),
        filename=file.name,
        purpose=file.purpose.value,
    )


def describe_batch(batch: KeptBatch) -> BatchObject:
    problems = [
        BatchProblem(code=one.code, message=one.message, line=one.line, param=one.param)
        for one in batch.problems
    ]

    def reached(status: BatchStatus) -> int | None:
        at = batch.times.get(status)
        return None if at is None else int(at)

    return BatchObject(
        id=batch.id,
        endpoint=batch.endpoint,
        errors=BatchProblems(data=problems) if problems else None,
        input_file_id=batch.input_file,
        status=batch.status.value,
        output_file_id=batch.output_file,
        error_file_id=batch.error_file,
        created_at=int(batch.created_at),
        in_progress_at=reached(BatchStatus.IN_PROGRESS),
        expires_at=int(batch.expires_at),
        finalizing_at=reached(BatchStatus.FINALIZING),
        completed_at=reached(BatchStatus.COMPLETED),
        failed_at=reached(BatchStatus.FAILED),
        expired_at=reached(BatchStatus.EXPIRED),
        cancelling_at=reached(BatchStatus.CANCELLING),
        cancelled_at=reached(BatchStatus.CANCELLED),
        request_counts=RequestCounts(
            total=batch.total, completed=batch.completed, failed=batch.failed
        ),
        usage=_describe_usage(batch.usage),
        metadata=None if batch.metadata is None else dict(batch.metadata),
    )


def _describe_usage(used: TokenUsage) -> BatchUsage:
    return BatchUsage(
        input_tokens=used.input,
        input_tokens_details=CachedTokens(cached_tokens=used.cached),
        output_tokens=used.output,
        output_tokens_details=ReasoningTokens(reasoning_tokens=used.reasoning),
        total_tokens=used.input + used.output,
    )
