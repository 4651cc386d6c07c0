"""Jobs as rows of the database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, replace

from cantata.contract.service import SpokenWord
from cantata.jobs.job import Job, JobChapter, JobFile, JobSentence, JobStatus, NewJob
from cantata.jobs.records import insert_row, select_row, select_rows

TimedSentence = tuple[str, int, tuple[SpokenWord, ...]]
"""Text, samples of its sound and of the silence before it, and its words, whose times begin with
that silence."""

_JOBS = """
SELECT id, owner, status, created_at, ended_at, expires_at, options AS "options [json]",
    json_object('sample_rate', sample_rate, 'channels', channels) AS "shape [json]", title,
    author, language, error_code, error, count(number) AS sentences, count(samples) AS spoken,
    coalesce(sum(skipped != ''), 0) AS skipped, coalesce(sum(samples), 0) AS samples,
    coalesce(sum(words_verified), 0) AS words_verified,
    coalesce(sum(words_missing), 0) AS words_missing, coalesce(sum(words_extra), 0) AS words_extra
FROM jobs LEFT JOIN sentences ON job = id"""
_CHAPTERS = """
SELECT chapters.number AS number, title, count(text) AS sentences, count(samples) AS spoken,
    coalesce(sum(samples), 0) AS samples
FROM chapters LEFT JOIN sentences ON sentences.job = chapters.job AND chapter = chapters.number
WHERE chapters.job = ? GROUP BY chapters.number ORDER BY chapters.number"""


def insert_job(db: sqlite3.Connection, id: str, job: NewJob, now: float, reserved: int) -> None:
    """Keep a new job; `reserved`: bytes that it may need."""
    row = {
        "id": id,
        "status": JobStatus.QUEUED,
        "created_at": now,
        "options": json.dumps(dict(job.options)),
        "reserved": reserved,
    }
    same = {name: getattr(job, name) for name in ("owner", "title", "author", "language")}
    row |= same | asdict(job.shape)
    insert_row(db, "jobs", row)
    for number, title in enumerate(job.chapters):
        insert_row(db, "chapters", {"job": id, "number": number, "title": title})
    for sentence in job.sentences:
        insert_row(db, "sentences", {"job": id} | asdict(sentence))


def select_jobs(db: sqlite3.Connection, owner: str) -> list[Job]:
    """All jobs of a client, the newest first, without chapters and files."""
    query = f"{_JOBS} WHERE owner = ? GROUP BY id ORDER BY created_at DESC, id"
    return select_rows(db, Job, query, (owner,))


def select_job(db: sqlite3.Connection, id: str) -> Job | None:
    job = select_row(db, Job, f"{_JOBS} WHERE id = ? GROUP BY id", (id,))
    if job is None:
        return None
    chapters = select_rows(db, JobChapter, _CHAPTERS, (id,))
    files = "SELECT name, media_type, size FROM files WHERE job = ? ORDER BY number"
    return replace(
        job, chapters=tuple(chapters), files=tuple(select_rows(db, JobFile, files, (id,)))
    )


def select_unspoken(db: sqlite3.Connection, id: str, limit: int) -> list[JobSentence]:
    query = (
        'SELECT number, chapter, text, speaker, pause_s, begins AS "begins [bool]" FROM sentences'
        " WHERE job = ? AND samples IS NULL ORDER BY number LIMIT ?"
    )
    return select_rows(db, JobSentence, query, (id, limit))


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
    db.execute(
        "INSERT INTO events SELECT ?, coalesce(max(id), 0) + 1, ? FROM events WHERE job = ?",
        (id, json.dumps(event), id),
    )


def count_bytes(db: sqlite3.Connection) -> int:
    """Bytes that all jobs, files and batches have, or may need."""
    found = db.execute(
        "SELECT (SELECT coalesce(sum(reserved), 0) FROM jobs)"
        " + (SELECT coalesce(sum(size), 0) FROM stored_files)"
        " + (SELECT coalesce(sum(output_bytes + error_bytes), 0) FROM batches"
        " WHERE delete_at IS NULL)"
    )
    return int(found.fetchone()[0])
