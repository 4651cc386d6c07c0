"""Jobs as rows of the database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from cantata.contract.service import SpokenWord
from cantata.jobs.job import (
    Job,
    JobChapter,
    JobFile,
    JobStatus,
    NewJob,
    Sentence,
    SoundShape,
)

TimedSentence = tuple[str, int, tuple[SpokenWord, ...]]
"""Text, samples of its sound and of the silence before it, and its words, whose times begin with
that silence."""

_JOBS = """
SELECT id, owner, status, created_at, ended_at, expires_at, options, sample_rate, channels, title,
    author, language, error_code, error, count(number), count(samples),
    coalesce(sum(skipped != ''), 0), coalesce(sum(samples), 0)
FROM jobs LEFT JOIN sentences ON job = id
"""


def insert_job(db: sqlite3.Connection, id: str, job: NewJob, now: float, reserved: int) -> None:
    """Keep a new job; `reserved`: bytes that it may need."""
    db.execute(
        "INSERT INTO jobs (id, owner, status, created_at, options, sample_rate, channels, title,"
        " author, language, reserved) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(id, job.owner, JobStatus.QUEUED, now, json.dumps(dict(job.options))),
            *(job.shape.sample_rate, job.shape.channels, job.title, job.author, job.language),
            reserved,
        ),
    )
    db.executemany(
        "INSERT INTO chapters VALUES (?, ?, ?)",
        [(id, number, title) for number, title in enumerate(job.chapters)],
    )
    db.executemany(
        "INSERT INTO sentences (job, number, chapter, text, speaker, pause_s, begins)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (id, one.number, one.chapter, one.text, one.speaker, one.pause_s, one.begins)
            for one in job.sentences
        ],
    )


def select_jobs(db: sqlite3.Connection, owner: str) -> list[Job]:
    """All jobs of a client, the newest first, without chapters and files."""
    rows = db.execute(f"{_JOBS} WHERE owner = ? GROUP BY id ORDER BY created_at DESC, id", (owner,))
    return [_make_job(row) for row in rows]


def select_job(db: sqlite3.Connection, id: str) -> Job | None:
    """A job, with its chapters and files."""
    row = db.execute(f"{_JOBS} WHERE id = ? GROUP BY id", (id,)).fetchone()
    if row is None:
        return None
    chapters = db.execute(
        "SELECT chapters.number, title, count(text), count(samples), coalesce(sum(samples), 0)"
        " FROM chapters LEFT JOIN sentences ON sentences.job = chapters.job"
        " AND chapter = chapters.number"
        " WHERE chapters.job = ? GROUP BY chapters.number ORDER BY chapters.number",
        (id,),
    ).fetchall()
    files = db.execute(
        "SELECT name, media_type, size FROM files WHERE job = ? ORDER BY number", (id,)
    ).fetchall()
    return _make_job(
        row, tuple(JobChapter(*one) for one in chapters), tuple(JobFile(*one) for one in files)
    )


def select_unspoken(db: sqlite3.Connection, id: str, most: int) -> list[Sentence]:
    """The next sentences of a job."""
    rows = db.execute(
        "SELECT number, chapter, text, speaker, pause_s, begins FROM sentences"
        " WHERE job = ? AND samples IS NULL ORDER BY number LIMIT ?",
        (id, most),
    )
    return [
        Sentence(number, chapter, text, speaker, pause_s, bool(begins))
        for number, chapter, text, speaker, pause_s, begins in rows
    ]


def select_words(db: sqlite3.Connection, id: str, chapter: int) -> list[TimedSentence]:
    """The spoken sentences of a chapter in order: text, samples, words."""
    rows = db.execute(
        "SELECT text, samples, words FROM sentences WHERE job = ? AND chapter = ?"
        " AND samples IS NOT NULL ORDER BY number",
        (id, chapter),
    )
    return [
        (text, samples, tuple(SpokenWord(*word) for word in json.loads(words)))
        for text, samples, words in rows
    ]


def dump_words(words: Sequence[SpokenWord], before_s: float) -> str:
    """Words as JSON, `before_s` later."""
    return json.dumps(
        [
            (
                *(word.text_start, word.text_end),
                *(round(word.start_s + before_s, 4), round(word.end_s + before_s, 4)),
            )
            for word in words
        ]
    )


def add_event(db: sqlite3.Connection, id: str, event: dict[str, object]) -> None:
    """Add the next event of a job."""
    db.execute(
        "INSERT INTO events SELECT ?, coalesce(max(id), 0) + 1, ? FROM events WHERE job = ?",
        (id, json.dumps(event), id),
    )


def _make_job(
    row: tuple[Any, ...], chapters: tuple[JobChapter, ...] = (), files: tuple[JobFile, ...] = ()
) -> Job:
    (id, owner, status, created, ended, expires, options, rate, channels, *rest) = row
    title, author, language, code, error, sentences, spoken, skipped, samples = rest
    return Job(
        id,
        owner,
        JobStatus(status),
        created,
        ended,
        expires,
        json.loads(options),
        SoundShape(rate, channels),
        title,
        author,
        language,
        sentences,
        spoken,
        skipped,
        samples,
        code,
        error,
        chapters,
        files,
    )
