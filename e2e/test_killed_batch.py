"""A server with the default voice is killed in the middle of a batch: the next one goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cantata_bench.server import running_server

from .server import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.level1, pytest.mark.thorough]

LINES = 16
SPEECH = "/v1/audio/speech"


@contextmanager
def serving(folder: Path, log: str) -> Iterator[tuple[int, httpx.Client]]:
    """Its process id, and a client of it."""
    options = ("--jobs-dir", str(folder / "jobs"), "--model", "quartet")
    with (
        running_server(folder / log, options=options) as running,
        httpx.Client(base_url=running.url, timeout=60) as http,
    ):
        yield running.pid, http


def begin(http: httpx.Client) -> str:
    lines = [
        {
            "custom_id": f"line-{number}",
            "method": "POST",
            "url": SPEECH,
            "body": {"input": f"This is line {number}, and it is not long.", "seed": 5},
        }
        for number in range(LINES)
    ]
    data = "\n".join(map(json.dumps, lines)).encode()
    sent = http.post("/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", data)})
    body = {"input_file_id": sent.json()["id"], "endpoint": SPEECH, "completion_window": "24h"}
    return str(http.post("/v1/batches", json=body).json()["id"])


def wait_for(http: httpx.Client, id: str, answered: int) -> dict[str, Any]:
    """The batch once so many lines are answered; all of them: at its end."""
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        found.append(http.get(f"/v1/batches/{id}").json())
        counted = int(found[-1]["request_counts"]["completed"])
        return found[-1]["status"] == "completed" or LINES > counted >= answered

    wait_until(is_there, 240, f"{answered} lines of {id} are answered")
    return found[-1]


def read_sounds(http: httpx.Client, batch: dict[str, Any]) -> dict[str, str]:
    assert batch["request_counts"] == {"total": LINES, "completed": LINES, "failed": 0}
    content = http.get(f"/v1/files/{batch['output_file_id']}/content").text
    lines = [json.loads(line) for line in content.splitlines()]
    return {one["custom_id"]: one["response"]["body"]["audio"] for one in lines}


def test_a_killed_batch_sounds_as_if_nothing_had_happened(tmp_path: Path) -> None:
    with serving(tmp_path, "first.log") as (pid, http):
        id = begin(http)
        wait_for(http, id, 3)
        os.kill(pid, signal.SIGKILL)
    with serving(tmp_path, "second.log") as (_, http):
        begun = http.get(f"/v1/batches/{id}").json()
        assert begun["status"] == "in_progress"
        assert begun["request_counts"]["completed"] >= 3
        resumed = read_sounds(http, wait_for(http, id, LINES))
        assert resumed == read_sounds(http, wait_for(http, begin(http), LINES))
