"""Jobs over HTTP: spoken in the background, resumed, followed, cancelled, refused."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from fake_service import FakeService, eventually, expected_pcm
from live_server import Server, running

from cantata.api.access.api_keys import ApiKeys
from cantata.api.app import create_app
from cantata.api.settings import JobSettings, ReferenceSettings, SecuritySettings, ServerSettings
from cantata.audio.pcm import to_s16
from cantata.contract.data.errors import RequestFailed, StageDied
from cantata.jobs.job import JobLimits
from cantata.jobs.script import PARAGRAPH_S
from documents_made import make_epub, make_pdf

JOBS = "/v1/jobs"
TEXT = "# One\n\nFirst here. Second here.\n\n# Two\n\nThird here."
KEYS = ("a-key-of-twenty-chars", "b-key-of-twenty-chars")
PDF = make_pdf("A page.")


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(
        jobs=JobSettings(tmp_path / "jobs", JobLimits(per_owner=3)),
        references=ReferenceSettings(lexicons_dir=tmp_path / "lexicons"),
    )


@pytest.fixture
async def server(settings: ServerSettings) -> AsyncIterator[Server]:
    service = FakeService()
    service.solo.behaviour.chunks = 2
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


async def until_done(http: httpx.AsyncClient, id: str) -> list[dict[str, Any]]:
    """The events of a job to its end."""
    answer = await http.get(f"{JOBS}/{id}/events")
    assert answer.status_code == 200
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


async def test_life_of_a_job(server: Server, http: httpx.AsyncClient) -> None:
    body = {"input": TEXT, "response_format": "wav", "voice": "ben", "title": "A Title"}
    made = (await http.post(JOBS, json=body)).json()
    assert (made["title"], made["model"], made["sentences"]) == ("A Title", "solo", 5)
    events = await until_done(http, made["id"])
    kinds = [one["type"] for one in events]
    assert kinds[:2] == ["job.queued", "job.speaking"]
    assert kinds[-2:] == ["job.writing", "job.completed"]
    assert [one["spoken"] for one in events if one["type"] == "job.progress"] == [1, 2, 3, 4, 5]
    job = (await http.get(f"{JOBS}/{made['id']}")).json()
    assert job["status"] == "completed"
    assert [one["name"] for one in job["files"]] == ["01-one.wav", "02-two.wav"]
    assert [one["title"] for one in job["chapters"]] == ["One", "Two"]
    sound = await http.get(f"{JOBS}/{job['id']}/files/02-two.wav")
    assert sound.headers["content-type"] == "audio/wav"
    heard, rate = soundfile.read(io.BytesIO(sound.content), dtype="int16")
    pause = np.zeros((round(0.8 * rate), 1), np.int16)
    said = [to_s16(expected_pcm(one, server.solo.behaviour)) for one in ("Two", "Third here.")]
    assert np.array_equal(heard, np.concatenate([said[0], pause, said[1]])[:, 0])
    part = await http.get(f"{JOBS}/{job['id']}/files/02-two.wav", headers={"range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"RIFF")
    assert all(one.batch and one.voice == "ben" for one in server.solo.counts.requests)
    assert [one.continued for one in server.solo.counts.requests][:3].count(False) == 1
    (listed,) = (await http.get(JOBS)).json()["data"]
    assert (listed["id"], listed["files"]) == (job["id"], None)
    assert (await http.post(f"{JOBS}/{job['id']}/cancel")).json()["error"]["code"] == "job_ended"
    assert (await http.delete(f"{JOBS}/{job['id']}")).json()["deleted"]
    gone = await http.get(f"{JOBS}/{job['id']}")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "job_not_found")


async def test_a_client_follows_from_where_it_left_off(
    server: Server, http: httpx.AsyncClient
) -> None:
    id = (await http.post(JOBS, json={"input": TEXT})).json()["id"]
    whole = await until_done(http, id)
    rest = await http.get(f"{JOBS}/{id}/events", headers={"last-event-id": "5"})
    assert rest.text.startswith("id: 6\n")
    last = await http.get(f"{JOBS}/{id}/events", headers={"last-event-id": str(len(whole))})
    assert (last.status_code, last.content) == (204, b"")
    bad = await http.get(f"{JOBS}/{id}/events", headers={"last-event-id": "x"})
    assert bad.status_code == 400


async def test_documents_are_sent_as_forms(server: Server, http: httpx.AsyncClient) -> None:
    files = {"file": ("book.epub", make_epub())}
    fields = {"speed": "1.5", "voices": '{"Ann": "ben"}', "lexicons": "", "response_format": "pcm"}
    made = (await http.post(JOBS, data=fields, files=files)).json()
    assert (made["title"], made["author"]) == ("The Small Book", "A. Writer")
    assert [one["title"] for one in made["chapters"]] == ["The Sea", "The Land", "The Sky"]
    await until_done(http, made["id"])
    assert all(one.speed == 1.5 for one in server.solo.counts.requests)
    for name, data in (("a.pdf", PDF), ("a.html", b"<p>Hi."), ("a.txt", b"Hi."), ("a.md", b"Hi.")):
        answer = await http.post(JOBS, files={"file": (name, data)})
        assert answer.status_code == 200, answer.text
        await http.delete(f"{JOBS}/{answer.json()['id']}")
    by_text = await http.post(JOBS, data={"input": "Hi."}, files={"lexicons[]": (None, "")})
    assert by_text.status_code == 200


async def test_speakers_have_voices(server: Server, http: httpx.AsyncClient) -> None:
    body = {"input": "ANN: Hello.\nBOB: Bye.", "voices": {"Ann": "ben", "Bob": {"id": "nova"}}}
    await until_done(http, (await http.post(JOBS, json=body)).json()["id"])
    spoken = {one.text: one.voice for one in server.solo.counts.requests}
    assert spoken == {"Hello.": "ben", "Bye.": "clara"}


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({}, 400, "invalid_value", "input"),
        ({"input": "***"}, 400, "invalid_document", "input"),
        ({"input": "Hi.", "voice": "zoe"}, 400, "voice_not_found", "voice"),
        ({"input": "Hi.", "voices": {"Ann": "zoe"}}, 400, "voice_not_found", "voice"),
        ({"input": "Hi.", "lexicons": ["x"]}, 404, "lexicon_not_found", "lexicons"),
        ({"input": "Hi.", "response_format": "ogg"}, 400, "invalid_value", "response_format"),
        ({"input": "Hi.", "speed": "fast"}, 400, "invalid_value", "speed"),
    ],
)
async def test_a_bad_job_is_refused(
    server: Server,
    http: httpx.AsyncClient,
    body: dict[str, Any],
    status: int,
    code: str,
    param: str,
) -> None:
    answer = await http.post(JOBS, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert param != "response_format" or "'m4b' or 'epub'" in error["message"]


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("a.docx", b"x", "invalid_document"),
        ("a.epub", b"PK nothing", "invalid_document"),
        ("a.epub", make_epub({"META-INF/rights.xml": "<r/>"}), "invalid_document"),
        ("a.pdf", make_pdf(""), "invalid_document"),
        ("a.txt", b"\xff\xfea", "invalid_document"),
    ],
)
async def test_a_bad_document_is_refused(
    server: Server, http: httpx.AsyncClient, name: str, data: bytes, code: str
) -> None:
    answer = await http.post(JOBS, files={"file": (name, data)})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, code, "file")


async def test_what_cannot_be_spoken_is_left_out(server: Server, http: httpx.AsyncClient) -> None:
    body = {"input": 'Good. <phoneme ph="#">Bad</phoneme> here. \u4e00\u4e01. End.'}
    events = await until_done(http, (await http.post(JOBS, json=body)).json()["id"])
    assert events[-1]["type"] == "job.completed"
    (skipped,) = (one for one in events if "skipped" in one)
    assert "spoken" in skipped["reason"]


async def test_a_failure_that_passes_is_waited_for(server: Server, http: httpx.AsyncClient) -> None:
    behaviour = server.solo.behaviour
    behaviour.error, behaviour.fail_after = StageDied("the stage died"), 1
    id = (await http.post(JOBS, json={"input": "One here."})).json()["id"]
    await eventually(lambda: server.solo.counts.started > 1)
    behaviour.fail_after = None
    assert (await until_done(http, id))[-1]["type"] == "job.completed"


async def test_a_failure_that_stays_ends_the_job(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata.jobs.speaking._ATTEMPTS", 1)
    server.solo.behaviour.error, server.solo.behaviour.fail_after = RequestFailed("no"), 0
    id = (await http.post(JOBS, json={"input": "One here."})).json()["id"]
    assert (await until_done(http, id))[-1]["code"] == "request_failed"
    job = (await http.get(f"{JOBS}/{id}")).json()
    assert (job["status"], job["error"]["code"]) == ("failed", "request_failed")


async def test_a_job_waits_for_a_full_disk(
    server: Server,
    http: httpx.AsyncClient,
    settings: ServerSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cantata.jobs.runner._RETRY_S", 0.01)
    server.solo.behaviour.may_sound = asyncio.Event()
    id = (await http.post(JOBS, json={"input": "One here."})).json()["id"]
    assert settings.jobs.folder is not None
    sound = settings.jobs.folder / id / "00000.pcm"
    sound.symlink_to("/dev/full")
    server.solo.behaviour.may_sound.set()
    await eventually(lambda: server.solo.counts.finished > 2)
    assert (await http.get(f"{JOBS}/{id}")).json()["status"] == "speaking"
    sound.unlink()
    assert (await until_done(http, id))[-1]["type"] == "job.completed"


async def test_a_running_job_is_cancelled_and_the_next_begins(
    server: Server, http: httpx.AsyncClient
) -> None:
    server.solo.behaviour.may_sound = asyncio.Event()
    ids = [(await http.post(JOBS, json={"input": TEXT})).json()["id"] for _ in range(3)]
    await eventually(lambda: server.solo.counts.open == 8)
    full = await http.post(JOBS, json={"input": TEXT})
    assert (full.status_code, full.json()["error"]["code"]) == (409, "jobs_full")
    assert (await http.post(f"{JOBS}/{ids[0]}/cancel")).json()["status"] == "cancelled"
    await http.delete(f"{JOBS}/{ids[1]}")
    await eventually(lambda: server.solo.counts.open == 4)
    server.solo.behaviour.may_sound.set()
    assert (await until_done(http, ids[2]))[-1]["type"] == "job.completed"
    assert (await until_done(http, ids[0]))[-1]["type"] == "job.cancelled"


async def test_the_next_server_goes_on(settings: ServerSettings) -> None:
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            await http.post(JOBS, json={"input": "One here. Two here."})
            id = (await http.post(JOBS, json={"input": TEXT, "response_format": "pcm"})).json()[
                "id"
            ]
            await eventually(lambda: service.solo.counts.finished > 2)
    later = FakeService()
    client = httpx.AsyncClient(timeout=60)
    async with running(later, settings) as server, client as http:
        http.base_url = httpx.URL(server.url)
        await until_done(http, id)
        sound = await http.get(f"{JOBS}/{id}/files/01-one.pcm")
        said = [to_s16(expected_pcm(one, later.solo.behaviour)) for one in ("One", "First here.")]
        pause = np.zeros((round(0.8 * 24_000), 1), np.int16)
        whole = np.concatenate([said[0], pause, said[1]])[:, 0]
        assert np.array_equal(np.frombuffer(sound.content, "<i2")[: len(whole)], whole)
    assert PARAGRAPH_S < 0.8


async def test_each_key_has_its_own_jobs(settings: ServerSettings, tmp_path: Path) -> None:
    guarded = ServerSettings(jobs=settings.jobs, security=SecuritySettings(api_keys=ApiKeys(KEYS)))
    async with running(FakeService(), guarded) as server:
        await eventually(lambda: server.service.ready)
        first, second = (
            httpx.AsyncClient(base_url=server.url, headers={"authorization": f"Bearer {key}"})
            for key in KEYS
        )
        async with first, second:
            id = (await first.post(JOBS, json={"input": "Hi."})).json()["id"]
            assert (await second.get(f"{JOBS}/{id}")).status_code == 404
            assert (await second.delete(f"{JOBS}/{id}")).status_code == 404
            assert (await second.get(JOBS)).json()["data"] == []
            assert len((await first.get(JOBS)).json()["data"]) == 1


async def test_a_second_server_on_a_folder_says_so(
    server: Server, http: httpx.AsyncClient, settings: ServerSettings
) -> None:
    first = await http.post(JOBS, json={"input": "Hi."})
    async with running(FakeService(), settings) as other:
        await eventually(lambda: other.service.ready)
        async with httpx.AsyncClient(base_url=other.url) as there:
            for answer in (await there.post(JOBS, json={"input": "Hi."}), await there.get(JOBS)):
                assert answer.status_code == 503
                assert answer.json()["error"]["code"] == "jobs_locked"
            spoken = await there.post("/v1/audio/speech", json={"input": "Hi."})
            assert spoken.status_code == 200, "speech needs no store"
    assert (await until_done(http, first.json()["id"]))[-1]["type"] == "job.completed"


async def test_a_server_without_a_folder_keeps_none() -> None:
    app = create_app(FakeService(), ServerSettings())
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.post(JOBS, json={"input": "Hi."})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
