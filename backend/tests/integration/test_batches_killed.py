"""A server is killed in the middle of a batch: the next one goes on, and its answers stay."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tiny_voice.kept_server import keeper

pytestmark = pytest.mark.integration

LINES = 60


def make_input() -> bytes:
    lines = [
        {
            "custom_id": f"line-{number}",
            "method": "POST",
            "url": "/v1/audio/speech",
            "body": {"input": f"Words of number {number}.", "response_format": "pcm", "seed": 5},
        }
        for number in range(LINES)
    ]
    return "".join(json.dumps(one) + "\n" for one in lines).encode()


def begin(http: httpx.Client) -> str:
    file = http.post(
        "/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", make_input())}
    ).json()
    body = {"input_file_id": file["id"], "endpoint": "/v1/audio/speech"}
    return str(http.post("/v1/batches", json={**body, "completion_window": "24h"}).json()["id"])


def follow(http: httpx.Client, id: str, answered: int) -> dict[str, Any]:
    """Wait until so many lines are answered; all of them: until the end."""
    while True:
        batch = dict(http.get(f"/v1/batches/{id}").json())
        enough = answered < LINES and batch["request_counts"]["completed"] >= answered
        if enough or batch["status"] == "completed":
            return batch
        time.sleep(0.02)


def read_sounds(http: httpx.Client, batch: dict[str, Any]) -> dict[str, str]:
    content = http.get(f"/v1/files/{batch['output_file_id']}/content").text
    lines = [json.loads(one) for one in content.splitlines()]
    assert len(lines) == LINES
    return {one["custom_id"]: one["response"]["body"]["audio"] for one in lines}


def read_kept(folder: Path) -> bytes:
    """The answers of the only batch that has some, but for the last, which may not count yet."""
    (data,) = (
        data
        for one in (folder / "jobs" / "files").iterdir()
        if (data := one.read_bytes()).startswith(b'{"id": "batch_req_')
    )
    return b"".join(data.splitlines(keepends=True)[:-1])


def test_a_killed_batch_goes_on_and_its_lines_stay(tmp_path: Path) -> None:
    with keeper(tmp_path) as (process, http):
        id = begin(http)
        follow(http, id, 5)
        process.kill()
        process.wait()
    kept = read_kept(tmp_path)
    with keeper(tmp_path) as (_, http):
        begun = http.get(f"/v1/batches/{id}").json()
        assert begun["status"] == "in_progress"
        assert 5 <= begun["request_counts"]["completed"] < LINES
        done = follow(http, id, LINES)
        assert done["request_counts"] == {"total": LINES, "completed": LINES, "failed": 0}
        written = http.get(f"/v1/files/{done['output_file_id']}/content").content
        assert kept.count(b"\n") >= 4
        assert written.startswith(kept)
        resumed = read_sounds(http, done)
        assert resumed == read_sounds(http, follow(http, begin(http), LINES))
