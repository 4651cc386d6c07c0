"""What is kept of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.service import SpokenWord


class JobStatus(StrEnum):
    QUEUED = "queued"
    SPEAKING = "speaking"
    WRITING = "writing"
    """All is spoken; its files are being written."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobSentence:
    """What is spoken at once; work that is lost is lost by the sentence."""

    number: int
    """From 0, in the whole job."""
    chapter: int
    """From 0."""
    text: str
    speaker: str = ""
    """Name in the job's `voices`; empty: the job's own voice."""
    pause_s: float = 0.0
    """Silence before it, beside the voice's own."""
    begins: bool = False
    """It is the first of its chapter."""


@dataclass(frozen=True, slots=True)
class HeardWords:
    """What was heard of a sentence that was verified."""

    words: int
    """That its text has."""
    missing: tuple[str, ...] = ()
    """Words of the text that were not heard."""
    extra: tuple[str, ...] = ()
    """Words that were heard and are not in the text."""


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    samples: NDArray[np.int16]
    """[N, C]."""
    words: tuple[SpokenWord, ...]
    """Places in the sentence's text; seconds from its first sample."""
    skipped: str = ""
    """Why it could not be spoken; empty: it was."""
    heard: HeardWords | None = None
    """None: it was not verified."""


@dataclass(frozen=True, slots=True)
class SoundShape:
    """What all sound of a job has in common."""

    sample_rate: int
    """Hz."""
    channels: int


@dataclass(frozen=True, slots=True)
class NewJob:
    owner: str
    """Label of the client's API key; empty: it has none."""
    options: Mapping[str, Any]
    """How to speak and what to write, in JSON; whoever speaks gives it its meaning."""
    shape: SoundShape
    title: str
    author: str
    language: str
    chapters: tuple[str, ...]
    """Titles."""
    sentences: tuple[JobSentence, ...]
    cover: bytes = b""


@dataclass(frozen=True, slots=True)
class JobFile:
    """A result."""

    name: str
    media_type: str
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class JobChapter:
    """A chapter, as far as it is spoken."""

    number: int
    """From 0."""
    title: str
    sentences: int
    spoken: int
    samples: int
    """Per channel."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    owner: str
    status: JobStatus
    created_at: float
    """Unix time, as the next two."""
    ended_at: float | None
    expires_at: float | None
    """When it will be deleted; None: it has not ended."""
    options: Mapping[str, Any]
    shape: SoundShape
    title: str
    author: str
    language: str
    sentences: int
    spoken: int
    skipped: int
    samples: int
    """Per channel."""
    words_verified: int
    """Of the sentences that are spoken, as the next two."""
    words_missing: int
    words_extra: int
    error_code: str
    """Empty: it has not failed, as the next."""
    error: str
    chapters: tuple[JobChapter, ...] = field(default=())
    files: tuple[JobFile, ...] = field(default=())

    @property
    def seconds(self) -> float:
        return self.samples / self.shape.sample_rate


@dataclass(frozen=True, slots=True)
class JobEvent:
    """A step of a job."""

    id: int
    """From 1, without gaps."""
    data: str
    """JSON."""


@dataclass(frozen=True, slots=True)
class JobLimits:
    """How much is kept."""

    per_owner: int = 100
    """Jobs, and as many batches."""
    files_per_owner: int = 1_000
    """That clients upload and batches write."""
    max_bytes: int = 50 << 30
    """Of sound, as estimated when a job arrives, and of files."""
    expires_s: float = 7 * 86_400.0
    """Seconds from the end of a job or a batch, or the beginning of a file, to its deletion."""
    max_source_bytes: int = 64 << 20
    """Largest document."""
    max_file_bytes: int = 512 << 20
    max_batch_bytes: int = 200 << 20
    """Largest file of a batch's requests."""
