"""A process that an actor hosts: what both hear of each other, and how it ends."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from cantata.distributed.ray.hosted import ActorProcess, start_process

PROCESS = """
import asyncio, json, signal, sys
from cantata.distributed.ray.hosted import hosted, connect_actor

async def main():
    actor, arguments = await connect_actor()
    print("this is no JSON: it goes to the log")
    heard, ended = [], asyncio.Event()
    loop = asyncio.get_running_loop()
    if not arguments.get("deaf"):
        loop.add_signal_handler(signal.SIGTERM, ended.set)
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    async with hosted(actor, lambda: {"heard": heard, **arguments}, heard.append):
        await ended.wait()
    actor.send_report({"last": "words"})
    return arguments.get("code", 0)

sys.exit(asyncio.run(main()))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "hosted_for_a_test.py").write_text(PROCESS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    return "hosted_for_a_test"


async def said(process: ActorProcess, name: str, value: object) -> None:
    async with asyncio.timeout(60):
        while process.last_report.get(name) != value:
            await process.updates()


async def test_both_hear_each_other(module: str) -> None:
    process = await start_process(module, {"name": "ada"})
    try:
        await said(process, "name", "ada")
        await process.send({"addresses": ["h1:1"]})
        await said(process, "heard", [{"addresses": ["h1:1"]}])
        assert process.ended is None
    finally:
        assert await process.stop(within_s=30) == 0
    assert process.last_report == {"last": "words"}
    assert process.ended == 0
    await process.send({"to": "nobody"})
    assert await process.updates() == {"last": "words"}, "it waits for nothing any more"


async def test_it_ends_when_its_actor_does(module: str) -> None:
    """The end of its input is all that it sees of a killed actor."""
    process = await start_process(module, {"code": 3})
    await said(process, "code", 3)
    assert process._process.stdin is not None
    process._process.stdin.close()
    await said(process, "last", "words")
    async with asyncio.timeout(60):
        assert await process._process.wait() == 3
    await process.stop(within_s=0)


async def test_an_end_is_news(module: str) -> None:
    process = await start_process(module, {})
    await said(process, "heard", [])
    process.kill()
    async with asyncio.timeout(60):
        while process.ended is None:
            await process.updates()
    assert process.ended == -9
    assert await process.stop(within_s=0) == -9


async def test_one_that_does_not_end_is_killed(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata.distributed.ray.hosted._KILL_AFTER_S", 0.1)
    process = await start_process(module, {"deaf": True})
    await said(process, "deaf", True)
    assert await process.stop(within_s=0) == -9
