"""A server is killed in the middle of a book: the next one goes on, sample for sample."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tiny_voice.kept_server import keeper

pytestmark = pytest.mark.integration

SENTENCES = 160
TEXT = "\n\n".join(
    f"# Chapter {chapter}\n\n" + " ".join(f"Words of number {n}." for n in range(SENTENCES // 4))
    for chapter in range(4)
)
BODY = {"input": TEXT, "response_format": "pcm", "temperature": 1.0, "seed": 5}


def follow(http: httpx.Client, id: str, spoken: int) -> None:
    """Read a job's events up to this many sentences, or to its end."""
    with http.stream("GET", f"/v1/jobs/{id}/events") as events:
        for line in events.iter_lines():
            if line.startswith("data: ") and json.loads(line[6:]).get("spoken", 0) >= spoken:
                return


def read_files(http: httpx.Client, id: str) -> list[bytes]:
    job = http.get(f"/v1/jobs/{id}").json()
    assert job["status"] == "completed"
    return [http.get(f"/v1/jobs/{id}/files/{one['name']}").content for one in job["files"]]


def test_a_killed_job_sounds_as_if_nothing_had_happened(tmp_path: Path) -> None:
    with keeper(tmp_path) as (process, http):
        id = http.post("/v1/jobs", json=BODY).json()["id"]
        follow(http, id, 5)
        process.kill()
    with keeper(tmp_path) as (_, http):
        begun = http.get(f"/v1/jobs/{id}").json()
        assert begun["status"] == "speaking"
        assert 5 <= begun["spoken"] < begun["sentences"] == SENTENCES + 4
        follow(http, id, SENTENCES + 5)
        resumed = read_files(http, id)
        whole = http.post("/v1/jobs", json=BODY).json()["id"]
        follow(http, whole, SENTENCES + 5)
        assert len(resumed) == 4
        assert read_files(http, whole) == resumed
