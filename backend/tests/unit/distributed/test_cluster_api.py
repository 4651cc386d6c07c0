"""The api over replicas: the same routes, and what an operator sees."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import httpx
import numpy as np
import pytest
from fake_cluster import FakeCluster, Listed, fake_cluster, undisturbed
from fake_service import FakeModel, eventually
from live_server import Server, running
from otlp_collector import collecting
from socket_client import client
from test_transcriptions import spoken as recording

from cantata.api.server.listening import bound, listen
from cantata.api.settings import ServerSettings
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.transcripts import SPEECH_RATE
from cantata.contract.service import AdmissionReport
from dashboard import exposed, expressions, labels, shown

TEXT = "One two three."


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with fake_cluster(2, interval_s=0.001) as cluster:
        yield cluster


@pytest.fixture
async def server(cluster: FakeCluster) -> AsyncIterator[Server]:
    async with running(cluster.edge) as server:  # type: ignore[arg-type]
        await eventually(lambda: cluster.edge.ready)
        yield server


@pytest.fixture
async def http(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=60, verify=False) as client:
        yield client


def pcm(cluster: FakeCluster, text: str) -> bytes:
    return encode_s16le(np.frombuffer(undisturbed(cluster, text), np.float32).reshape(-1, 1))


async def test_speech_over_http_and_websocket(
    cluster: FakeCluster, server: Server, http: httpx.AsyncClient
) -> None:
    body = {"model": "solo", "input": TEXT, "voice": "alloy", "response_format": "pcm"}
    answer = await http.post("/v1/audio/speech", json=body)
    assert (answer.status_code, answer.content) == (200, pcm(cluster, TEXT))
    assert "route;dur=" in answer.headers["server-timing"]
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="word")
        for piece in ("One ", "two ", "three."):
            await c.send("input.text", text=piece)
        await c.send("input.done")
        await c.until("audio.done")
        assert c.pcm == pcm(cluster, TEXT)


async def test_a_recording_is_written_down(
    cluster: FakeCluster, server: Server, http: httpx.AsyncClient
) -> None:
    """Each of its parts on some replica, several at a time."""
    answer = await http.post(
        "/v1/audio/transcriptions",
        data={"model": "whisper-1", "response_format": "verbose_json"},
        files={"file": ("speech.wav", recording(3))},
    )
    assert answer.status_code == 200, answer.text
    counts = [replica.service.ears.counts for replica in cluster.replicas]
    assert sum(one.finished for one in counts) == 3
    assert all(request.batch for one in counts for request in one.requests)
    lengths = sorted(len(sound) for one in counts for sound in one.sounds)
    words = sum(length // (SPEECH_RATE // 2) for length in lengths)
    assert len(answer.json()["text"].split()) == words > 15
    assert [one.open for one in counts] == [0, 0]
    metrics = (await http.get("/metrics")).text
    places = cluster.replicas[0].service.ears.admission.places
    assert f'cantata_admission_places{{model="ears"}} {2 * places}.0' in metrics


async def test_models_and_voices_are_the_replicas(http: httpx.AsyncClient) -> None:
    listed = (await http.get("/v1/models")).json()
    names = [model["id"] for model in listed["data"]]
    assert names == ["solo", "duo", "omni", "reader", "painter", "editor", "ears"]
    voices = (await http.get("/v1/audio/voices")).json()
    assert {voice["id"] for voice in voices["voices"]} >= {"clara", "ben"}


async def test_health_ready_and_metrics_name_the_replicas(
    cluster: FakeCluster, http: httpx.AsyncClient
) -> None:
    first, second = (str(replica.host.address) for replica in cluster.replicas)
    health = (await http.get("/health")).json()
    assert health["status"] == "ok"
    assert sorted(replica["address"] for replica in health["replicas"]) == sorted((first, second))
    assert {stage["replica"] for stage in health["stages"]} == {first, second}
    metrics = (await http.get("/metrics")).text
    assert f'cantata_replica_up{{replica="{first}"}} 1.0' in metrics
    assert f'cantata_stage_alive{{model="solo",replica="{second}",stage="talker"}} 1.0' in metrics
    assert (await http.get("/ready")).status_code == 200

    await cluster.replicas[0].host.stop()
    await cluster.known(1)
    health = (await http.get("/health")).json()
    assert health["status"] == "degraded"
    [gone] = [replica for replica in health["replicas"] if not replica["ready"]]
    assert (gone["address"], gone["lost"]) == (first, 1)
    assert gone["message"] in health["message"]
    assert health["message"].startswith(f"replica {first}: ")
    metrics = (await http.get("/metrics")).text
    assert f'cantata_replica_up{{replica="{first}"}} 0.0' in metrics
    assert (await http.get("/ready")).status_code == 200

    await cluster.replicas[1].host.stop()
    await cluster.known(0)
    refusal = await http.get("/ready")
    assert (refusal.status_code, refusal.json()["error"]["code"]) == (503, "not_ready")
    message = refusal.json()["error"]["message"]
    assert message.startswith("no replica takes requests for model solo, duo, ")
    assert first in message
    assert second in message
    assert "stage" not in message
    body = {"model": "solo", "input": TEXT, "voice": "alloy"}
    answer = await http.post("/v1/audio/speech", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stage_died")
    assert answer.headers["retry-after"] == "1"


async def test_the_dashboard_shows_what_an_edge_exposes(
    cluster: FakeCluster, http: httpx.AsyncClient
) -> None:
    body = {"model": "solo", "input": TEXT, "voice": "alloy", "response_format": "pcm"}
    for _ in range(3):
        assert (await http.post("/v1/audio/speech", json=body)).status_code == 200
    text = (await http.get("/metrics")).text
    assert shown() <= exposed(text), shown() - exposed(text)
    found = labels(text)
    of_replicas = [one for one in expressions() if "cantata_replica_" in one]
    assert len(of_replicas) > 5
    for expression in of_replicas:
        [name] = re.findall(r"cantata_\w+", expression)
        asked = re.findall(r"by \(([^)]*)\)", expression) + re.findall(r"{(\w+)=~", expression)
        assert {label.strip() for one in asked for label in one.split(",")} <= found[name]
    routed = re.findall(r'^cantata_replica_routed_total{model="solo",.*} (.*)$', text, re.MULTILINE)
    assert sum(map(float, routed)) == 3


async def test_ready_says_which_replica_is_about_to_leave(
    cluster: FakeCluster, http: httpx.AsyncClient
) -> None:
    for replica in cluster.replicas:
        await replica.host.drain(0)
    await cluster.known(0)
    message = (await http.get("/ready")).json()["error"]["message"]
    for replica in cluster.replicas:
        assert f"{replica.host.address}: it is stopping" in message


async def test_an_early_rejection_is_said_in_words(
    cluster: FakeCluster, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the body is read; the replicas' figures are nobody else's business."""
    full = AdmissionReport(places=1, running=1, waiting=0, waiting_batch=0, slots=1)
    monkeypatch.setattr(FakeModel, "admission", property(lambda self: full))
    for replica in cluster.replicas:
        replica.solo.behaviour.may_sound = asyncio.Event()
    body = {"model": "solo", "input": TEXT, "voice": "alloy", "response_format": "pcm"}
    async with asyncio.TaskGroup() as asking:
        asked = [asking.create_task(http.post("/v1/audio/speech", json=body)) for _ in range(4)]
        await eventually(lambda: cluster.edge.waiting["solo"] == 2)
        answer = await http.post("/v1/audio/speech", json=body)
        for replica in cluster.replicas:
            assert replica.solo.behaviour.may_sound is not None
            replica.solo.behaviour.may_sound.set()
    assert answer.status_code == 429
    error = answer.json()["error"]
    assert (error["code"], error["message"]) == (
        "rate_limit_exceeded",
        "2 requests are waiting for a place",
    )
    assert int(answer.headers["retry-after"]) >= 1
    assert [one.result().status_code for one in asked] == [200] * 4


async def test_two_edges_share_a_port(cluster: FakeCluster) -> None:
    first = bound("127.0.0.1", 0, shared=True)
    second = bound("127.0.0.1", first.getsockname()[1], shared=True)
    other = type(cluster.edge)(
        Listed({replica.host.address for replica in cluster.replicas}), cluster.edge._replicas._key
    )
    async with (
        running(cluster.edge, listener=first) as one,  # type: ignore[arg-type]
        running(other, listener=second),  # type: ignore[arg-type]
    ):
        await eventually(lambda: other.ready and cluster.edge.ready)
        with pytest.raises(OSError, match="in use"):
            listen("127.0.0.1", first.getsockname()[1])
        body = {"model": "solo", "input": TEXT, "voice": "alloy", "response_format": "pcm"}
        for _ in range(20):
            async with httpx.AsyncClient(base_url=one.url, timeout=60, verify=False) as asking:
                answer = await asking.post("/v1/audio/speech", json=body)
                assert answer.content == pcm(cluster, TEXT)


async def test_one_trace_covers_the_edge_and_the_replicas_stages(cluster: FakeCluster) -> None:
    """The edge makes all of it, of the times that the replica's stages have stamped."""
    with collecting() as collector:
        settings = ServerSettings(otlp_traces_endpoint=collector.url)
        async with (
            running(cluster.edge, settings) as server,  # type: ignore[arg-type]
            httpx.AsyncClient(base_url=server.url, timeout=60, verify=False) as http,
        ):
            await eventually(lambda: cluster.edge.ready)
            body = {"model": "solo", "input": TEXT, "response_format": "pcm"}
            assert (await http.post("/v1/audio/speech", json=body)).status_code == 200
    work = collector.named("speak solo")
    steps = collector.children(work)
    assert {"route", "text", "admit", "talker", "deliver", "stream"} <= set(steps)
    assert len({one.trace_id for one in collector.spans}) == 1
    ends = [one.end_time_unix_nano for one in steps.values()]
    assert max(ends) <= work.end_time_unix_nano
