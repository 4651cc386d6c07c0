"""What is kept of files, and of batches: files of requests that are answered in the background."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class FilePurpose(StrEnum):
    """What a file is for, in OpenAI's words."""

    BATCH = "batch"
    """A line for each request."""
    BATCH_OUTPUT = "batch_output"
    """A line for each answer."""
    USER_DATA = "user_data"
    """Anything that requests name, such as a recording."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file of a client."""

    id: str
    owner: str
    """Label of the client's API key; empty: it has none."""
    purpose: FilePurpose
    name: str
    size: int
    """Bytes."""
    created_at: float
    """Unix time, as the next."""
    expires_at: float


class BatchStatus(StrEnum):
    """How far a batch is, in OpenAI's words."""

    VALIDATING = "validating"
    FAILED = "failed"
    """Its file is not valid; nothing was answered."""
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    """Its time was over before all was answered."""
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL


FINAL = (BatchStatus.FAILED, BatchStatus.COMPLETED, BatchStatus.EXPIRED, BatchStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class NewBatch:
    owner: str
    endpoint: str
    """The path that all its lines ask."""
    input_file: str
    metadata: Mapping[str, str] | None
    output_expires_s: int | None
    """Seconds for which its results are kept; None: as long as all else."""


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A request, as a place in the batch's file."""

    number: int
    """Of the line, from 1."""
    custom_id: str
    place: int
    """Bytes before it."""
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Why a file cannot be a batch."""

    code: str
    message: str
    line: int | None
    """From 1; None: the whole file is at fault."""
    param: str | None = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What requests took, in tokens as each route counts them."""

    input: int = 0
    cached: int = 0
    """Of `input`."""
    output: int = 0
    reasoning: int = 0
    """Of `output`."""


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """What a line's request was answered."""

    status: int
    """Of HTTP."""
    request_id: str
    body: bytes
    """JSON."""
    passes: bool = False
    """It is a refusal, and a later attempt may have another answer."""
    usage: TokenUsage = TokenUsage()

    @property
    def is_success(self) -> bool:
        """Whether the request was done."""
        return self.status < 400


@dataclass(frozen=True, slots=True)
class KeptBatch:
    id: str
    owner: str
    endpoint: str
    input_file: str
    metadata: Mapping[str, str] | None
    status: BatchStatus
    created_at: float
    """Unix time, as the next and `times`."""
    expires_at: float
    """When it ends, done or not."""
    times: Mapping[str, float]
    """When it came to each status, by name."""
    problems: tuple[LineProblem, ...]
    """Of its file; empty: there are none."""
    total: int
    """Requests; 0 before they are counted."""
    completed: int
    failed: int
    output_file: str | None
    """Id of the file of answers; None: there is none, or not yet."""
    error_file: str | None
    """Id of the file of lines that failed."""
    usage: TokenUsage = TokenUsage()
    """Of all lines that were answered so far."""
