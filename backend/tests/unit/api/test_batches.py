"""Files and batches over HTTP: uploaded, answered as the routes answer, cancelled, refused."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from batch_client import BATCHES, FILES, SPEECH, begin, get, line, read, until_ended, upload
from fake_service import FakeService, eventually, expected_pcm
from live_server import Server, running

from cantata.api.access.api_keys import ApiKeys
from cantata.api.app import create_app
from cantata.api.settings import JobSettings, SecuritySettings, ServerSettings
from cantata.audio.pcm import to_s16
from cantata.contract.data.errors import RequestFailed, StageDied
from cantata.jobs.job import JobLimits

KEYS = ("a-key-of-twenty-chars", "b-key-of-twenty-chars")


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    limits = JobLimits(per_owner=3, max_file_bytes=3 << 20, max_batch_bytes=3 << 20)
    return ServerSettings(jobs=JobSettings(tmp_path / "jobs", limits))


@pytest.fixture
async def server(settings: ServerSettings) -> AsyncIterator[Server]:
    service = FakeService()
    service.solo.behaviour.chunks = 2
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


async def test_life_of_a_file(server: Server, http: httpx.AsyncClient) -> None:
    form = {"purpose": "user_data", "expires_after[anchor]": "created_at"}
    sent = await http.post(
        FILES,
        data={**form, "expires_after[seconds]": "3600"},
        files={"file": ("/a b.wav", b"ab")},
    )
    file = sent.json()
    assert (file["object"], file["bytes"], file["filename"]) == ("file", 2, "a b.wav")
    assert file["expires_at"] == file["created_at"] + 3_600
    assert (await http.get(f"{FILES}/{file['id']}")).json() == file
    content = await http.get(f"{FILES}/{file['id']}/content", headers={"range": "bytes=1-"})
    assert (content.status_code, content.content) == (206, b"b")
    second = await upload(http, line("a"))
    listed = (await http.get(FILES, params={"limit": 1})).json()
    assert [one["id"] for one in listed["data"]] == [second]
    assert (listed["has_more"], listed["last_id"]) == (True, second)
    rest = (await http.get(FILES, params={"after": second, "order": "desc"})).json()
    assert [one["id"] for one in rest["data"]] == [file["id"]]
    of_purpose = (await http.get(FILES, params={"purpose": "user_data"})).json()
    assert [one["id"] for one in of_purpose["data"]] == [file["id"]]
    deleted = await http.delete(f"{FILES}/{file['id']}")
    assert deleted.json() == {"object": "file", "id": file["id"], "deleted": True}
    gone = await http.get(f"{FILES}/{file['id']}/content")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "file_not_found")


@pytest.mark.parametrize(
    ("form", "files", "status", "param"),
    [
        ({"purpose": "assistants"}, {"file": ("a", b"a")}, 400, "purpose"),
        ({"purpose": "batch_output"}, {"file": ("a", b"a")}, 400, "purpose"),
        ({}, {"file": ("a", b"a")}, 400, "purpose"),
        ({"purpose": "batch"}, {"other": ("a", b"a")}, 400, "file"),
        ({"purpose": "batch"}, {"file": ("a", b"")}, 400, "file"),
        ({"purpose": "batch", "expires_after[seconds]": "5"}, {"file": ("a", b"a")}, 400, None),
        ({"purpose": "batch"}, {"file": ("a", bytes((3 << 20) + 1))}, 413, "file"),
    ],
)
async def test_a_bad_upload_is_refused(
    server: Server,
    http: httpx.AsyncClient,
    form: dict[str, str],
    files: dict[str, Any],
    status: int,
    param: str | None,
) -> None:
    answer = await http.post(FILES, data=form, files=files)
    error = answer.json()["error"]
    assert answer.status_code == status, answer.text
    assert param in (None, error["param"])
    assert (await http.get(FILES)).json()["data"] == []


async def test_lines_are_answered_as_the_route_answers(
    server: Server, http: httpx.AsyncClient
) -> None:
    lines = [
        line("one", input="One here.", response_format="pcm", voice="ben"),
        line("two", input="Two here.", response_format="wav"),
        line("nobody", input="Three here.", voice="zoe"),
        line("long", input="x" * (1 << 19)),
        line("streamed", input="Four here.", stream_format="sse"),
    ]
    made = await begin(http, *lines, metadata={"for": "a test"})
    assert (made["status"], made["output_file_id"]) == ("validating", None)
    assert made["expires_at"] == made["created_at"] + 86_400
    done = await until_ended(server, http, made["id"])
    assert (done["status"], done["metadata"]) == ("completed", {"for": "a test"})
    assert done["request_counts"] == {"total": 5, "completed": 2, "failed": 3}
    for at in ("in_progress_at", "finalizing_at", "completed_at"):
        assert done[at] >= made["created_at"]
    said = await read(http, done["output_file_id"])
    body = said["one"]["response"]["body"]
    sound = np.frombuffer(base64.b64decode(body["audio"]), "<i2")
    expected = to_s16(expected_pcm("One here.", server.solo.behaviour))[:, 0]
    assert np.array_equal(sound, expected)
    assert (body["format"], body["sample_rate"], body["channels"]) == ("pcm", 24_000, 1)
    wav = said["two"]["response"]["body"]
    assert base64.b64decode(wav["audio"])[:4] == b"RIFF"
    assert (wav["content_type"], wav["ignored"]) == ("audio/wav", [])
    assert said["one"]["id"].startswith("batch_req_")
    assert said["one"]["response"]["request_id"].startswith("req_")
    failed = await read(http, done["error_file_id"])
    codes = {
        id: (one["response"]["status_code"], one["response"]["body"]["error"]["code"])
        for id, one in failed.items()
    }
    assert codes == {
        "nobody": (400, "voice_not_found"),
        "long": (400, "invalid_value"),
        "streamed": (400, "invalid_value"),
    }
    assert all(one.batch for one in server.solo.counts.requests)
    files = (await http.get(FILES, params={"purpose": "batch_output"})).json()["data"]
    assert {one["filename"] for one in files} == {
        f"{done['id']}_output.jsonl",
        f"{done['id']}_error.jsonl",
    }
    (listed,) = (await http.get(BATCHES)).json()["data"]
    assert listed == done
    ended = await http.post(f"{BATCHES}/{done['id']}/cancel")
    assert (ended.status_code, ended.json()["error"]["code"]) == (409, "batch_ended")


async def test_an_invalid_file_fails_by_line(server: Server, http: httpx.AsyncClient) -> None:
    lines = [line("a", input="Hi."), line("a", input="Hi."), line("b", url="/v1/other")]
    failed = await until_ended(server, http, (await begin(http, *lines))["id"])
    assert (failed["status"], failed["output_file_id"]) == ("failed", None)
    assert failed["request_counts"] == {"total": 0, "completed": 0, "failed": 0}
    found = [(one["line"], one["code"], one["param"]) for one in failed["errors"]["data"]]
    assert found == [(2, "duplicate_custom_id", "custom_id"), (3, "invalid_url", "url")]
    assert not server.solo.counts.requests


@pytest.mark.parametrize(
    ("change", "status", "code", "param"),
    [
        ({"input_file_id": "file-none"}, 404, "file_not_found", "input_file_id"),
        ({"endpoint": "/v1/embeddings"}, 400, "invalid_value", "endpoint"),
        ({"completion_window": "1h"}, 400, "invalid_value", "completion_window"),
        ({"metadata": {"a": 5}}, 400, "invalid_value", "metadata.a"),
        ({"metadata": {"a" * 65: "b"}}, 400, "invalid_value", None),
        ({"metadata": {str(n): "b" for n in range(17)}}, 400, "invalid_value", "metadata"),
        (
            {"output_expires_after": {"anchor": "created_at", "seconds": 5}},
            400,
            "invalid_value",
            "output_expires_after.seconds",
        ),
    ],
)
async def test_a_bad_batch_is_refused(
    server: Server,
    http: httpx.AsyncClient,
    change: dict[str, object],
    status: int,
    code: str,
    param: str | None,
) -> None:
    body = {"endpoint": SPEECH, "completion_window": "24h", "input_file_id": "x"} | change
    if "input_file_id" not in change:
        body["input_file_id"] = await upload(http, line("a", input="Hi."))
    answer = await http.post(BATCHES, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert param in (None, error["param"])
    assert (await http.get(BATCHES)).json()["data"] == []


async def test_a_running_batch_is_cancelled(server: Server, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.may_sound = asyncio.Event()
    lines = [line(str(number), input="Hi.") for number in range(9)]
    ids = [(await begin(http, *lines))["id"] for _ in range(3)]
    await eventually(lambda: server.solo.counts.open == 8)
    body = {"input_file_id": await upload(http, *lines), "endpoint": SPEECH}
    full = await http.post(BATCHES, json={**body, "completion_window": "24h"})
    assert (full.status_code, full.json()["error"]["code"]) == (409, "jobs_full")
    used = await http.delete(f"{FILES}/{(await get(http, ids[0]))['input_file_id']}")
    assert (used.status_code, used.json()["error"]["code"]) == (409, "file_in_use")
    for id in ids[:2]:
        assert (await http.post(f"{BATCHES}/{id}/cancel")).json()["status"] == "cancelling"
    done = await until_ended(server, http, ids[0])
    assert (done["status"], done["output_file_id"]) == ("cancelled", None)
    assert done["cancelled_at"] >= done["cancelling_at"]
    assert len(await read(http, done["error_file_id"])) == 9
    await until_ended(server, http, ids[1])
    server.solo.behaviour.may_sound.set()
    assert (await until_ended(server, http, ids[2]))["request_counts"]["completed"] == 9


async def test_a_batch_ends_with_its_time(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata.jobs.batches.WINDOW_S", 1.0)
    server.solo.behaviour.may_sound = asyncio.Event()
    made = await begin(http, line("a", input="Hi."))
    done = await until_ended(server, http, made["id"])
    assert (done["status"], done["expired_at"] is None) == ("expired", False)
    (left,) = (await read(http, done["error_file_id"])).values()
    assert (left["response"], left["error"]["code"]) == (None, "batch_expired")
    await eventually(lambda: server.solo.counts.open == 0)


async def test_a_failure_that_passes_is_waited_for(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata.jobs.answering._ATTEMPTS", 1)
    behaviour = server.solo.behaviour
    behaviour.error, behaviour.fail_after = StageDied("the stage died"), 1
    made = await begin(http, line("a", input="One here."))
    await eventually(lambda: server.solo.counts.started > 1)
    behaviour.fail_after = None
    assert (await until_ended(server, http, made["id"]))["request_counts"]["completed"] == 1


async def test_a_failure_that_stays_is_a_line_of_errors(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata.jobs.answering._ATTEMPTS", 1)
    server.solo.behaviour.error, server.solo.behaviour.fail_after = RequestFailed("no"), 0
    done = await until_ended(server, http, (await begin(http, line("a", input="One here.")))["id"])
    assert (done["status"], done["request_counts"]["failed"]) == ("completed", 1)
    (failed,) = (await read(http, done["error_file_id"])).values()
    assert failed["response"]["body"]["error"]["code"] == "request_failed"


async def test_each_key_has_its_own(settings: ServerSettings) -> None:
    guarded = ServerSettings(jobs=settings.jobs, security=SecuritySettings(api_keys=ApiKeys(KEYS)))
    async with running(FakeService(), guarded) as server:
        await eventually(lambda: server.service.ready)
        first, second = (
            httpx.AsyncClient(base_url=server.url, headers={"authorization": f"Bearer {key}"})
            for key in KEYS
        )
        async with first, second:
            made = await begin(first, line("a", input="Hi."))
            body = {"input_file_id": made["input_file_id"], "endpoint": SPEECH}
            foreign = await second.post(BATCHES, json={**body, "completion_window": "24h"})
            assert foreign.json()["error"]["code"] == "file_not_found"
            for path in (f"{FILES}/{made['input_file_id']}", f"{BATCHES}/{made['id']}"):
                assert (await second.get(path)).status_code == 404
            assert (await second.get(f"{FILES}/{made['input_file_id']}/content")).is_error
            assert (await second.get(FILES)).json()["data"] == []
            assert (await second.get(BATCHES)).json()["data"] == []
            assert (await second.get(BATCHES, params={"after": made["id"]})).status_code == 404
            done = await until_ended(server, first, made["id"])
            assert (await second.get(f"{FILES}/{done['output_file_id']}/content")).is_error


async def test_a_server_without_a_folder_keeps_none() -> None:
    transport = httpx.ASGITransport(create_app(FakeService(), ServerSettings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        for path in (FILES, BATCHES):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


async def test_a_folder_that_others_use_is_named(
    server: Server, http: httpx.AsyncClient, settings: ServerSettings
) -> None:
    await upload(http, line("a"))
    async with (
        running(FakeService(), settings) as second,
        httpx.AsyncClient(base_url=second.url) as other,
    ):
        answer = await other.get(FILES)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "jobs_locked")
