"""Log lines of a process: which process wrote them, and for which request."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import asyncio, logging
from cantata.utils.logs import LogFormat, configure_logging, make_work_id, log_for_request

configure_logging(logging.INFO, LogFormat("{}"), "cantata:talker:0")
logger = logging.getLogger("somebody's.library")

async def work(name):
    with log_for_request(name):
        await asyncio.sleep(0)
        await asyncio.to_thread(logger.info, "in a thread of %s", name)
        await asyncio.create_task(task())

async def task():
    logger.warning("in a task", extra={{"audio_s": 1.5, "work_id": make_work_id()}})

async def main():
    await asyncio.gather(work("a"), work("b"))
    logger.debug("too little")
    try:
        1 / 0
    except ZeroDivisionError:
        logger.exception("outside")

asyncio.run(main())
"""


def lines(log_format: str) -> list[str]:
    command = [sys.executable, "-c", SCRIPT.format(log_format)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines("json")]


def test_a_record_is_one_object_on_one_line(records: list[dict[str, Any]]) -> None:
    assert len(records) == 5
    for record in records:
        assert record["process"] == "cantata:talker:0"
        assert record["logger"] == "somebody's.library"
        assert record["time"].endswith("+00:00")
    assert [record["level"] for record in records].count("warning") == 2


def test_tasks_and_threads_belong_to_their_request(records: list[dict[str, Any]]) -> None:
    for name in "ab":
        mine = [record for record in records if record.get("request_id") == name]
        assert [record["message"] for record in mine] == [f"in a thread of {name}", "in a task"]
        assert mine[1]["audio_s"] == 1.5
        assert mine[1]["work_id"].startswith(f"{name}-")


def test_records_outside_requests_have_no_request_id(records: list[dict[str, Any]]) -> None:
    last = records[-1]
    assert "request_id" not in last
    assert last["message"] == "outside"
    assert "ZeroDivisionError" in last["exception"]


def test_text_is_for_people() -> None:
    text = lines("text")
    assert any(line.endswith("in a thread of a [a]") for line in text)
    assert "cantata:talker:0 somebody's.library: outside" in "\n".join(text)
