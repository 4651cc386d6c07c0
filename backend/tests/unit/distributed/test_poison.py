"""A request that ends whole replicas: it ends two, and nobody else loses a sample."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fake_cluster import KEY, collect_sound
from fake_service import Behaviour, eventually, expected_pcm
from fragile_replica import CHUNK_SAMPLES, POISON

from cantata.contract.data.errors import Quarantined, ReplicaLost
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpeechChunk
from cantata.distributed.address import Address, StaticDirectory
from cantata.distributed.edge.service import RemoteService
from cantata.distributed.key import KEY_VARIABLE

START_S = 60.0
TEXT = "One two three four five six seven eight nine ten eleven twelve thirteen. " * 2


@dataclass
class Processes:
    """Replicas, and an edge of theirs in the test's own process."""

    edge: RemoteService
    replicas: dict[str, subprocess.Popen[str]]
    """By address."""

    @property
    def killed(self) -> int:
        """How many have ended."""
        return sum(replica.poll() is not None for replica in self.replicas.values())

    @property
    def speaking(self) -> list[str]:
        """Those that have an order."""
        return [report.address for report in self.edge.get_replica_reports() if report.streams]

    async def known(self, count: int) -> None:
        async with asyncio.timeout(START_S):
            while sum(report.ready for report in self.edge.get_replica_reports()) != count:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def spoken(self, text: str) -> bytes:
        listener = Listener()
        await listener.listen(self, text)
        return collect_sound(listener.chunks)


@dataclass
class Listener:
    """One that can be watched."""

    chunks: list[SpeechChunk] = field(default_factory=list)

    async def listen(self, processes: Processes, text: str) -> None:
        speaking = processes.edge.get_model("solo").run(SpeechRequest(text, "clara"))
        async with speaking as utterance:
            async for chunk in utterance:
                self.chunks.append(chunk)


def undisturbed(text: str) -> bytes:
    return expected_pcm(text, Behaviour(chunk_samples=CHUNK_SAMPLES)).tobytes()


@contextmanager
def replica() -> Iterator[subprocess.Popen[str]]:
    script = str(Path(__file__).with_name("fragile_replica.py"))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        KEY_VARIABLE: KEY.secret.decode(),
    }
    command = [sys.executable, script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


@asynccontextmanager
async def processes(count: int) -> AsyncIterator[Processes]:
    with ExitStack() as stack:
        started = [stack.enter_context(replica()) for _ in range(count)]
        found: dict[str, subprocess.Popen[str]] = {}
        for process in started:
            assert process.stdout is not None
            found[(await asyncio.to_thread(process.stdout.readline)).strip()] = process
        edge = RemoteService(StaticDirectory(map(Address.parse, found)), KEY)
        running = Processes(edge, found)
        await edge.start()
        try:
            await running.known(count)
            yield running
        finally:
            await edge.stop()


async def test_it_ends_two_replicas_and_never_a_third() -> None:
    async with processes(3) as running:
        with pytest.raises(Quarantined, match="replica"):
            await running.spoken(f"{POISON} {TEXT}")
        await running.known(1)
        await eventually(lambda: running.killed == 2)
        for _ in range(3):
            with pytest.raises(Quarantined, match="replica"):
                await running.spoken(f"{POISON} {TEXT}")
        assert await running.spoken(TEXT) == undisturbed(TEXT)
        assert running.killed == 2
        assert running.edge.get_model("solo").admission.quarantined == 1


async def test_who_speaks_beside_it_hears_every_sample() -> None:
    """Some are on the first replica that it ends, some on the second, some on both."""
    async with processes(3) as running:
        texts = [f"{number} {TEXT}" for number in range(6)]
        listeners = [Listener() for _ in texts]
        listening = [
            asyncio.create_task(listener.listen(running, text))
            for listener, text in zip(listeners, texts, strict=True)
        ]
        # Far from where the poison acts.
        await eventually(lambda: all(len(listener.chunks) > 12 for listener in listeners))
        with pytest.raises(Quarantined):
            await running.spoken(f"{POISON} {TEXT}")
        await asyncio.gather(*listening)
        assert [collect_sound(one.chunks) for one in listeners] == [undisturbed(t) for t in texts]
        await eventually(lambda: running.killed == 2)
        assert running.edge.get_model("solo").admission.quarantined == 1
        again = await asyncio.gather(*map(running.spoken, texts))
        assert again == [undisturbed(text) for text in texts]


async def test_replicas_that_stand_still_are_nobodys_fault() -> None:
    """Machines stop and networks break whatever is spoken."""
    async with processes(2) as running:
        listener = Listener()
        listening = asyncio.create_task(listener.listen(running, TEXT))
        await eventually(lambda: len(listener.chunks) > 2)
        [first] = running.speaking
        running.replicas[first].send_signal(signal.SIGSTOP)
        await eventually(lambda: running.speaking not in ([], [first]))
        [second] = running.speaking
        running.replicas[second].send_signal(signal.SIGSTOP)
        with pytest.raises(ReplicaLost, match="second"):
            await listening
        for replica in running.replicas.values():
            replica.send_signal(signal.SIGCONT)
        await running.known(2)
        assert await running.spoken(TEXT) == undisturbed(TEXT)
