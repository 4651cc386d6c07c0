"""What is told of a request afterwards: a line of JSON, a trace; nothing unless asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import httpx
import pytest
from batch_client import begin, line, read, until_ended
from fake_service import Behaviour, FakeService, eventually
from live_server import running
from otlp_collector import collecting
from socket_client import client

from cantata.api.app import create_app
from cantata.api.settings import JobSettings, ServerSettings
from cantata.contract.data.errors import ConfigError, StageDied
from cantata.telemetry.request_log import STANDARD_OUTPUT, RequestLog
from cantata.telemetry.request_record import RequestRecord, note_error, recorded

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "Nobody may read these words"


async def speak(url: str, **fields: Any) -> httpx.Response:
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "mine"}
    body = {"input": SECRET, "model": "solo", "response_format": "pcm", **fields}
    async with httpx.AsyncClient(base_url=url, timeout=60, verify=False) as http:
        return await http.post("/v1/audio/speech", json=body, headers=headers)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_request_is_one_line_without_its_text(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    async with running(FakeService(), ServerSettings(request_log=path)) as server:
        assert (await speak(server.url)).status_code == 200
        assert (await speak(server.url, voice="nobody")).status_code == 400
        assert (await speak(server.url + "/nowhere")).status_code == 404
    spoken, refused, lost = read_lines(path)
    assert SECRET not in path.read_text()
    assert spoken["request_id"] == "mine"
    assert (spoken["method"], spoken["route"]) == ("POST", "/v1/audio/speech")
    assert (spoken["status"], spoken["error"], spoken["models"]) == (200, None, ["solo"])
    assert spoken["works"] == 1
    assert 0 < spoken["ttfp_s"] <= spoken["duration_s"]
    assert spoken["sound_s"] > 0
    assert (refused["status"], refused["error"]) == (400, "voice_not_found")
    assert (refused["works"], refused["ttfp_s"], refused["sound_s"]) == (0, None, 0)
    assert (lost["route"], lost["error"]) == (None, "not_found")


async def test_each_line_of_a_batch_is_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    service = FakeService()
    settings = ServerSettings(request_log=path, jobs=JobSettings(tmp_path / "jobs"))
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        async with httpx.AsyncClient(base_url=server.url) as http:
            lines = line("good", input=SECRET), line("bad", input=SECRET, voice="nobody")
            batch = await begin(http, *lines, line("stream", input=SECRET, stream_format="sse"))
            done = await until_ended(server, http, batch["id"])
            answers = await read(http, done["output_file_id"])
            answers |= await read(http, done["error_file_id"])
    assert SECRET not in path.read_text()
    told = {one["request_id"]: one for one in read_lines(path) if one["method"] == "BATCH"}
    good, bad, stream = (
        told[answers[id]["response"]["request_id"]] for id in ("good", "bad", "stream")
    )
    assert {one["route"] for one in told.values()} == {"/v1/audio/speech"}
    assert (good["status"], good["error"], good["models"]) == (200, None, ["solo"])
    assert (good["works"], good["sound_s"] > 0) == (1, True)
    assert (bad["status"], bad["error"], bad["works"]) == (400, "voice_not_found", 0)
    assert (stream["status"], stream["error"]) == (400, "invalid_value")
    assert len(told) == 3


async def test_a_failure_and_a_connection_are_told(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    service = FakeService()
    service.solo.behaviour = Behaviour(fail_after=1, error=StageDied("the talker died"))
    async with running(service, ServerSettings(request_log=path)) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            await speak(server.url)
        async with client(server.socket_url) as socket:
            await socket.configure(model="duo")
            await socket.speak("One.")
            await socket.speak("Two.")
    failed, connection = read_lines(path)
    assert failed["error"] == "stage_died"
    assert (connection["method"], connection["status"]) == ("WEBSOCKET", 101)
    assert (connection["works"], connection["models"]) == (2, ["duo"])
    assert connection["close_code"] == 1000


async def test_a_trace_goes_from_the_callers_span_to_the_stages(tmp_path: Path) -> None:
    with collecting() as collector:
        settings = ServerSettings(
            otlp_traces_endpoint=collector.url, request_log=tmp_path / "requests.jsonl"
        )
        async with running(FakeService(), settings) as server:
            await speak(server.url)
            await speak(server.url, voice="nobody")
    spoken, refused = (one for one in collector.spans if one.parent_span_id.hex() == PARENT)
    assert {one.trace_id.hex() for one in collector.spans} == {TRACE}
    assert collector.services == {"cantata"}
    assert spoken.name == refused.name == "POST /v1/audio/speech"
    assert collector.children(refused) == {}
    (work,) = collector.children(spoken).values()
    assert work.name == "speak solo"
    steps = collector.children(work)
    assert sorted(steps, key=lambda name: steps[name].start_time_unix_nano) == [
        *("text", "admit", "talker", "deliver", "stream")
    ]
    for inner, outer in [(work, spoken), *((step, work) for step in steps.values())]:
        assert outer.start_time_unix_nano <= inner.start_time_unix_nano
        assert inner.start_time_unix_nano <= inner.end_time_unix_nano
        assert inner.end_time_unix_nano <= outer.end_time_unix_nano
    assert read_lines(tmp_path / "requests.jsonl")[0]["trace_id"] == TRACE
    assert SECRET not in str(collector.spans)


async def test_a_caller_that_does_not_sample_gets_no_trace() -> None:
    with collecting() as collector:
        settings = ServerSettings(otlp_traces_endpoint=collector.url)
        async with (
            running(FakeService(), settings) as server,
            httpx.AsyncClient(base_url=server.url, verify=False) as http,
        ):
            await http.get("/v1/models", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
            await http.get("/v1/models", headers={"traceparent": "nonsense"})
    (span,) = collector.spans
    assert span.name == "GET /v1/models"
    assert not span.parent_span_id


async def test_a_collector_that_is_gone_holds_nothing_up() -> None:
    with collecting() as gone:
        settings = ServerSettings(otlp_traces_endpoint=gone.url)
    async with running(FakeService(), settings) as server:
        assert (await speak(server.url)).status_code == 200


async def test_a_log_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--request-log"):
        create_app(FakeService(), ServerSettings(request_log=tmp_path / "no" / "file"))


def test_standard_output_takes_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    log = RequestLog(STANDARD_OUTPUT)
    with recorded(RequestRecord("r", "GET"), [log], {}):
        note_error("not_found")
    log.close()
    assert json.loads(capsys.readouterr().out)["error"] == "not_found"
    note_error("outside")  # is nobody's


def test_nothing_of_it_is_loaded_unless_asked_for() -> None:
    code = (
        "import sys; from cantata.api import app; "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
