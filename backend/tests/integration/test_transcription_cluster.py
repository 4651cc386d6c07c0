"""Speech that a recognition stage on a stage host writes down, for a replica, for an edge: three
processes beside the stage's own, on two hosts where the machine allows it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import soundfile
import soxr

from cantata.config.plugins import locate
from cantata.contract.data.errors import InvalidRequest, StageDied
from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.contract.model.recognizer import Sound
from cantata.contract.transcription_service import TranscriptionModel
from cantata.distributed.address import Address, StaticDirectory
from cantata.distributed.edge.service import RemoteService
from cantata.distributed.key import LinkKey
from cantata.pipeline.local_transcription import LocalTranscriptionModel
from host_process import KEY, HostProcess, process_on_host

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(find_spec("ctranslate2") is None, reason="its runtime is an extra"),
]

MODEL, STAGE = "whisper", "recognize"
RECORDING = Path(__file__).parents[3] / "docs" / "voice" / "clara.mp3"
ASKED = TranscriptionRequest(timestamps=True)
LIMIT_S = 120.0


@dataclass
class ListeningCluster:
    """An edge, its replica, and the host of the replica's stage."""

    edge: RemoteService
    replica: HostProcess
    host: HostProcess

    @property
    def model(self) -> TranscriptionModel:
        return self.edge.transcription_models[MODEL]

    async def idle(self) -> None:
        """Return when the stage holds nothing."""
        async with asyncio.timeout(30):
            while any(  # noqa: ASYNC110
                count
                for report in await self.edge.collect_stage_reports()
                for count in report.counts.values()
            ):
                await asyncio.sleep(0.02)


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[HostProcess]]:
    """The replica, on this host, and the stage's host."""
    deployment = tmp_path_factory.mktemp("cluster") / "deploy.yaml"
    address = Address("127.0.0.2", 8301)
    words = ["cantata", "replica", "--listen", str(address), "--model", MODEL]
    replica = HostProcess([*words, "--deploy", str(deployment)], address)
    with ExitStack() as stack:
        command = ("cantata", "stage-host", "--listen", "{address}")
        host = stack.enter_context(process_on_host(8, 8300, *command))
        place = f'{{device: cpu, dtype: int8, slots: 4, max_batch: 1, host: "{host.address}"}}'
        deployment.write_text(f"stages:\n  {STAGE}: {place}\n")
        stack.callback(replica.end)
        for process in (host, replica):
            process.start()
        yield [replica, host]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(processes: list[HostProcess]) -> AsyncIterator[ListeningCluster]:
    replica, host = processes
    edge = RemoteService(StaticDirectory([replica.address]), LinkKey(KEY.encode()))
    async with asyncio.timeout(LIMIT_S):
        await edge.start()
    yield ListeningCluster(edge, replica, host)
    await edge.stop()


@pytest.fixture(scope="module")
def speech() -> Sound:
    sound, rate = soundfile.read(RECORDING, dtype="float32")
    return np.asarray(soxr.resample(sound, rate, SPEECH_RATE), np.float32)


async def transcribed(
    model: TranscriptionModel, speech: Sound, request: TranscriptionRequest = ASKED
) -> Transcript:
    async with model.run(request) as window:
        for piece in np.array_split(speech, 7):
            await window.feed(piece)
        return await window.finish()


@pytest.mark.thorough
async def test_the_words_are_those_of_one_machine(cluster: ListeningCluster, speech: Sound) -> None:
    alone = LocalTranscriptionModel(locate(MODEL))
    try:
        expected = await transcribed(alone, speech)
        assert len(expected.words) > 3
        for name in ("languages", "translates", "has_timestamps", "max_window_s"):
            assert getattr(cluster.model, name) == getattr(alone, name)
    finally:
        alone.close()
    assert await transcribed(cluster.model, speech) == expected
    assert cluster.model.admission.places == 4
    [report] = await cluster.edge.collect_stage_reports()
    assert (report.stage, report.host) == (STAGE, str(cluster.host.address))
    await cluster.idle()


async def test_words_come_while_somebody_speaks(cluster: ListeningCluster, speech: Sound) -> None:
    half = len(speech) // 2
    async with asyncio.timeout(LIMIT_S), cluster.model.run(ASKED) as window:
        await window.feed(speech[:half], recognize=True)
        partial = await anext(window.partials())
        assert partial.text
        assert partial.seconds == half / SPEECH_RATE
        await window.feed(speech[half:])
        transcript = await window.finish()
    assert transcript.text.lower().split()[:2] == partial.text.lower().split()[:2]
    assert len(transcript.text) > len(partial.text)


async def test_whoever_leaves_frees_the_window(cluster: ListeningCluster, speech: Sound) -> None:
    async with cluster.model.run(ASKED) as window:
        await window.feed(speech, recognize=True)
    await cluster.idle()
    with pytest.raises(InvalidRequest, match="language 'xx'"):
        await transcribed(cluster.model, speech, TranscriptionRequest("xx"))


async def test_a_lost_host_ends_its_windows(cluster: ListeningCluster, speech: Sound) -> None:
    """The last test: the host does not come back."""
    async with cluster.model.run(ASKED) as window:
        await window.feed(speech)
        cluster.host.send(signal.SIGKILL)
        async with asyncio.timeout(LIMIT_S):
            with pytest.raises(StageDied, match=STAGE):
                await anext(window.partials())
            while cluster.edge.ready:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    with pytest.raises(StageDied):
        await transcribed(cluster.model, speech)
