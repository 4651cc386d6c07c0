"""Health, readiness, metrics, listings and pages, while the service starts, runs and fails."""

from __future__ import annotations

import logging
import time
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fake_service import FakeModel, FakeService, eventually
from live_server import Server, running
from prometheus_client.parser import text_string_to_metric_families
from socket_client import client
from websockets.asyncio.client import connect

from cantata.api import app as app_module
from cantata.api.app import create_app, mount_pages
from cantata.api.settings import ServerSettings
from cantata.contract.data.errors import ChunkTimeout, ConfigError, RequestFailed, StageDied


async def test_health_answers_while_the_service_starts() -> None:
    service = FakeService()
    service.may_start.clear()
    async with (
        running(service) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        health = await http.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "starting")
        for path in ("/ready", "/v1/models", "/v1/audio/voices"):
            refused = await http.get(path)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "not_ready"
        spoken = await http.post("/v1/audio/speech", json={"input": "hi"})
        assert spoken.status_code == 503
        async with connect(server.socket_url) as socket:
            assert '"not_ready"' in str(await socket.recv())
        assert (await http.get("/metrics")).status_code == 200
        service.may_start.set()
        await eventually(lambda: service.ready)
        ready = await http.get("/ready")
        assert (ready.status_code, ready.json()) == (200, {"ready": True})
    assert service.stops == 1


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
async def test_uptime_does_not_follow_the_wall_clock(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
    before = (await http.get("/health")).json()["uptime_s"]
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + jump_s)
    assert before <= (await http.get("/health")).json()["uptime_s"] < 86_000


async def test_health_of_a_running_service(server: Server, http: httpx.AsyncClient) -> None:
    health = (await http.get("/health")).json()
    assert health["status"] == "ok"
    assert health["default_model"] == "solo"
    stage = health["stages"][0]
    assert (stage["model"], stage["stage"], stage["alive"]) == ("solo", "talker", True)
    assert stage["counts"] == {"requests": 0}
    server.service.ready = False
    assert (await http.get("/health")).json()["status"] == "degraded"
    assert (await http.get("/ready")).status_code == 503
    server.service.ready = True


@pytest.mark.parametrize("error", [ConfigError("no such checkpoint"), ValueError("broken")])
async def test_a_failed_start_is_reported(error: Exception) -> None:
    service = FakeService(start_error=error)
    async with (
        running(service) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        await server.app.state.context.lifecycle.settled.wait()
        health = await http.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "failed")
        assert health.json()["message"] == str(error)
        refused = await http.get("/ready")
        assert str(error) in refused.json()["error"]["message"]
    assert service.stops == 1


async def test_stopping_in_the_middle_of_a_start() -> None:
    service = FakeService()
    service.may_start.clear()
    async with running(service):
        pass
    assert service.stops == 1


async def test_listings_are_objects(asgi: httpx.AsyncClient) -> None:
    models = (await asgi.get("/v1/models")).json()
    assert models["object"] == "list"
    assert [model["id"] for model in models["data"]] == [
        "solo",
        "duo",
        "omni",
        "reader",
        "painter",
        "editor",
        "ears",
    ]
    audio = (await asgi.get("/v1/audio/models")).json()["models"]
    assert audio[1]["sample_rate"] == 48000
    assert audio[0]["default_voice"] == "clara"
    assert [model["sampled"] for model in audio] == [True, False]
    assert audio[0]["capabilities"] == {
        "instructions": True,
        "references": False,
        "max_references": 0,
        "languages": ["en"],
        "voice_blends": False,
        "open_text": True,
        "pauses": False,
        "paces": [1.0, 1.0],
        "speaker_tag": "",
        "options": {"mood": {"type": "string"}},
    }
    formats = {one["id"]: one for one in audio[1]["formats"]}
    assert list(formats) == ["mp3", "opus", "aac", "flac", "wav", "pcm"]
    assert formats["opus"]["sample_rates"] == [8000, 12000, 16000, 24000, 48000]
    assert formats["flac"]["sample_rates"] is None
    voices = (await asgi.get("/v1/audio/voices", params={"model": "solo"})).json()["voices"]
    assert [(v["id"], v["name"], v["model"]) for v in voices] == [
        ("clara", "Clara", "solo"),
        ("ben", "Ben", "solo"),
    ]
    assert voices[0]["aliases"] == ["alloy", "nova"]
    assert (voices[0]["gender"], voices[0]["kind"]) == ("female", "stock")
    assert voices[1]["gender"] is None
    assert len((await asgi.get("/v1/audio/voices")).json()["voices"]) == 4
    assert (await asgi.get("/v1/audio/voices?model=nope")).status_code == 404


async def test_the_openapi_document_promises_what_is_sent(asgi: httpx.AsyncClient) -> None:
    document = (await asgi.get("/openapi.json")).json()
    responses = document["paths"]["/v1/audio/speech"]["post"]["responses"]
    assert set(responses) == {"200", "4XX", "5XX"}
    assert "HTTPValidationError" not in document["components"]["schemas"]
    content = responses["200"]["content"]
    assert content["audio/mpeg"]["schema"] == {"type": "string", "format": "binary"}
    event = content["text/event-stream"]["itemSchema"]["properties"]["data"]
    told = event["contentSchema"]["properties"]["type"]["enum"]
    kinds = ("delta", "timestamps", "marks", "verification", "done", "error")
    assert told == [f"speech.audio.{kind}" for kind in kinds]


async def samples(http: httpx.AsyncClient) -> dict[tuple[str, ...], float]:
    text = (await http.get("/metrics")).text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_metrics_travel_compressed_if_the_client_accepts_it(http: httpx.AsyncClient) -> None:
    packed = await http.get("/metrics", headers={"accept-encoding": "deflate, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) * 4 < len(packed.content)
    plain = await http.get("/metrics", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    names = [
        {family.name for family in text_string_to_metric_families(answer.text)}
        for answer in (packed, plain)
    ]
    assert names[0] == names[1]
    assert names[0]


async def test_metrics(server: Server, http: httpx.AsyncClient) -> None:
    behaviour = server.solo.behaviour
    await http.post("/v1/audio/speech", json={"input": "hello"})
    behaviour.fail_after, behaviour.error = 1, RequestFailed("broke")
    with pytest.raises(httpx.RemoteProtocolError):
        await http.post("/v1/audio/speech", json={"input": "hello"})
    behaviour.fail_after, behaviour.chunks, behaviour.interval_s = None, 10_000, 0.01
    async with http.stream("POST", "/v1/audio/speech", json={"input": "hello"}) as response:
        pieces = response.aiter_raw()
        await anext(pieces)
        during = await samples(http)
        assert during[("cantata_requests_running", "solo")] == 1
        assert during[("cantata_stage_held", "solo", "codec", "requests")] == 1
        assert during[("cantata_slots_in_use", "solo")] == 1
        assert during[("cantata_slots", "solo")] == 1000
    await eventually(lambda: server.solo.counts.open == 0)
    behaviour.capacity = 0
    await http.post("/v1/audio/speech", json={"input": "hello"})
    after = await samples(http)
    for outcome in ("completed", "aborted"):
        assert after[(f"cantata_speech_stream_{outcome}_total", "solo")] == 1
    assert after[("cantata_speech_stream_failed_total", "solo", "failed")] == 1
    for reason in ("failed", "client_left"):
        assert after[("cantata_aborts_total", "solo", reason)] == 1
    assert after[("cantata_admission_admitted_total", "live", "solo")] == 3
    assert after[("cantata_queue_wait_seconds_count", "live", "solo")] == 3
    assert after[("cantata_audio_seconds_total", "solo")] >= 0.1 + 0.02
    steps = server.solo.counts.chunks
    assert after[("cantata_stage_step_seconds_count", "solo", "talker")] == steps
    assert after[("cantata_stage_step_seconds_sum", "solo", "talker")] == pytest.approx(
        0.004 * steps
    )
    assert after[("cantata_stage_step_seconds_bucket", "0.002", "solo", "talker")] == 0
    assert after[("cantata_stage_step_seconds_bucket", "0.005", "solo", "talker")] == steps
    assert after[("cantata_stage_step_seconds_bucket", "+Inf", "solo", "talker")] == steps
    assert after[("cantata_stage_batch_size_sum", "solo", "talker")] == steps
    assert after[("cantata_requests_running", "solo")] == 0
    assert after[("cantata_requests_waiting", "live", "solo")] == 0
    assert after[("cantata_admission_places", "solo")] == 0
    assert after[("cantata_admission_running", "solo")] == 0
    assert after[("cantata_admission_refused_total", "solo", "queue_full")] == 1
    assert after[("cantata_stage_held", "solo", "codec", "requests")] == 0
    assert after[("cantata_requests_rejected_total", "rate_limit_exceeded", "solo")] == 1
    assert after[("cantata_audio_ttfp_seconds_count", "solo")] == 3
    assert after[("cantata_audio_duration_seconds_sum", "solo")] == pytest.approx(0.1)
    assert after[("cantata_audio_rtf_count", "solo")] == 1
    assert after[("cantata_stage_rss_bytes", "solo", "talker")] == 1 << 20
    assert after[("cantata_stage_startup_seconds", "duo", "codec")] == 1.5
    for name, value in (("encodes_total", 3), ("hits_total", 2), ("joined_total", 1)):
        assert after[(f"cantata_stage_{name}", "solo", "codec")] == value
        assert (f"cantata_stage_{name}", "solo", "talker") not in after
    assert after[("cantata_stage_kept_bytes", "solo", "codec")] == 4096
    assert after[("cantata_stage_state_bytes", "solo", "codec")] == 1 << 30
    assert ("cantata_stage_state_bytes", "solo", "talker") not in after


async def test_what_a_listener_would_hear_is_measured(
    server: Server, http: httpx.AsyncClient
) -> None:
    """20 ms of sound, and the next after more than 60: a gap without a reserve, none with 100 ms.
    Batch files have no listener."""
    server.solo.behaviour.chunks, server.solo.behaviour.interval_s = 2, 0.06
    await http.post("/v1/audio/speech", json={"input": "hello"})
    server.solo.behaviour.chunks = 1
    await http.post("/v1/audio/speech", json={"input": "hello"})
    batch = {"requests": [{"custom_id": "a", "input": "hello"}]}
    await http.post("/v1/audio/speech/batch", json=batch)
    after = await samples(http)
    assert after[("cantata_audio_underruns_total", "solo", "0")] == 1
    assert after[("cantata_audio_underrun_seconds_count", "solo", "0")] == 2
    assert after[("cantata_audio_underrun_seconds_sum", "solo", "0")] >= 0.03
    assert after[("cantata_audio_continuous_total", "solo", "0")] == 1
    assert after[("cantata_audio_underrun_seconds_count", "solo", "100")] == 2
    assert after[("cantata_queue_wait_seconds_count", "batch", "solo")] == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ChunkTimeout("silent"), "timeout"),
        (StageDied("gone"), "stage_died"),
        (RequestFailed("broke"), "failed"),
    ],
)
async def test_failures_are_counted_by_reason(
    server: Server, http: httpx.AsyncClient, error: Exception, reason: str
) -> None:
    server.solo.behaviour.fail_after, server.solo.behaviour.error = 0, error
    await http.post("/v1/audio/speech", json={"input": "hello"})
    assert (await samples(http))[("cantata_aborts_total", "solo", reason)] == 1


async def test_a_cancel_and_a_disconnect_are_counted_apart(
    server: Server, http: httpx.AsyncClient
) -> None:
    server.solo.behaviour.chunks, server.solo.behaviour.interval_s = 1000, 0.01
    for cancels in (True, False):
        async with client(server.socket_url) as c:
            await c.configure()
            await c.submit("a long story")
            await c.until("audio.start")
            if cancels:
                await c.send("input.cancel")
                await c.until("input.cancelled")
        await eventually(lambda: server.solo.counts.open == 0)
    after = await samples(http)
    assert after[("cantata_aborts_total", "solo", "cancelled")] == 1
    assert after[("cantata_aborts_total", "solo", "client_left")] == 1


def page(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "cantata.pages")


def test_pages_are_mounted_or_explained(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mounted: list[Any] = []
    present = SimpleNamespace(name="present", load=lambda: mounted.append)
    pages = [page("missing", "no_such_package.app:mount"), present]
    monkeypatch.setattr(app_module, "entry_points", lambda group: pages)
    with caplog.at_level(logging.WARNING):
        app = create_app(FakeService())
        mount_pages(app)
    assert mounted == [app]
    assert [record.message for record in caplog.records] == [
        "page 'missing' is not served: No module named 'no_such_package' "
        "(pip install 'cantata[missing]' adds it)"
    ]


async def test_a_model_whose_sound_is_not_known_yet_is_listed_later() -> None:
    """It loads while another one speaks already."""

    class Loading(FakeModel):
        is_loading = True

        @property
        def sample_rate(self) -> int:
            if self.is_loading:
                raise StageDied("the model is not ready")
            return 24_000

        @sample_rate.setter
        def sample_rate(self, value: int) -> None: ...

    service = FakeService()
    loading = Loading("duo")
    service.models = {"solo": service.solo, "duo": loading}
    app = create_app(service, ServerSettings())
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        await app.state.context.lifecycle.settled.wait()

        async def listed() -> list[str]:
            answer = await client.get("/v1/audio/models")
            return [model["id"] for model in answer.json()["models"]]

        assert await listed() == ["solo"]
        body = {"input": "hello", "model": "duo"}
        assert (await client.post("/v1/audio/speech", json=body)).status_code == 503
        loading.is_loading = False
        assert await listed() == ["solo", "duo"]
