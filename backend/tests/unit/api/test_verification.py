"""Speech that is heard before it is believed: `verify` on the routes of speech."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService
from fake_transcription import FakeTranscriptionModel
from live_server import Server

from cantata.api.settings import JobSettings, ServerSettings
from cantata.api.speech.verification import compare_words, count_faults
from cantata.contract.data.transcripts import TranscribedWord, Transcript, TranscriptionRequest
from cantata.jobs.job import JobLimits

SPEECH, BATCH, JOBS = "/v1/audio/speech", "/v1/audio/speech/batch", "/v1/jobs"


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(jobs=JobSettings(tmp_path / "jobs", JobLimits()))


def heard(*words: str) -> tuple[TranscribedWord, ...]:
    return tuple(TranscribedWord(word, n, n + 1, 0.9) for n, word in enumerate(words))


def test_words_are_found_whatever_their_case_and_marks() -> None:
    found = compare_words("Don't stop, Anna!", heard("dont", "stop", "anna."))
    assert not count_faults(found)
    assert [word.confidence for word in found.words] == [0.9] * 3
    assert [(word.text, word.text_start, word.text_end) for word in found.words] == [
        ("Don't", 0, 5),
        ("stop", 6, 10),
        ("Anna", 12, 16),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("this afternoon", ("this", "after", "noon")),
        ("after noon", ("afternoon",)),
        ("20 minutes", ("twenty", "minutes")),
        ("twenty minutes", ("20", "minutes")),
        ("Doctor Watson", ("Dr.", "Watson")),
    ],
)
def test_spellings_do_not_matter(text: str, words: tuple[str, ...]) -> None:
    assert not count_faults(compare_words(text, heard(*words)))


def test_missing_wrong_and_doubled_words_are_named() -> None:
    found = compare_words("one red house by the river", heard("one", "house", "buy", "the", "the"))
    assert found.missing == ["red", "by", "river"]
    by, river = found.words[3], found.words[5]
    assert (by.confidence, by.heard) == (0.0, "buy")
    # What was heard instead of a word is not beside it.
    assert (river.heard, found.extra) == ("the", [])
    doubled = compare_words("the river", heard("the", "the", "river"))
    assert (doubled.missing, doubled.extra) == ([], ["the"])
    assert compare_words("nothing", ()).missing == ["nothing"]
    assert not count_faults(compare_words("...", ()))


class Ears(FakeTranscriptionModel):
    """Hears a text, whatever is said; before that, other texts, one each time."""

    def __init__(self, *texts: str) -> None:
        super().__init__("ears")
        self._texts = list(texts)

    def transcript(self, seconds: float, request: TranscriptionRequest) -> Transcript:
        text = self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]
        words = heard(*text.split())
        return Transcript(text, "en", words, (), -0.1, 0.0, 0.0, seconds)


@pytest.fixture
def loud(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake voices' tones count as speech."""
    monkeypatch.setattr(
        "cantata.speech_input.vad.SileroJudge.compute_probability", lambda self, window: 1.0
    )


def give_ears(service: FakeService, *texts: str) -> None:
    service.transcription_models = {"ears": Ears(*texts)}
    service.ears = service.transcription_models["ears"]  # type: ignore[assignment]


async def follow(http: httpx.AsyncClient, id: str) -> list[dict[str, Any]]:
    """The events of a job to its end."""
    return read_events((await http.get(f"{JOBS}/{id}/events")).text)


def read_events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]


@pytest.mark.usefixtures("loud")
async def test_a_file_tells_what_was_heard(server: Server, http: httpx.AsyncClient) -> None:
    give_ears(server.service, "good day")
    body = {"input": "Good morning.", "verify": True, "response_format": "wav"}
    response = await http.post(SPEECH, json=body)
    assert response.status_code == 200, response.text
    plain = await http.post(SPEECH, json={**body, "verify": False})
    assert len(response.content) == len(plain.content)
    found = json.loads(response.headers["x-verification"])
    assert found["heard"] == "good day"
    assert found["missing"] == ["morning"]
    assert found["attempts"] == 1
    metrics = (await http.get("/metrics")).text
    assert 'cantata_speech_words_verified_total{model="solo",result="missing"} 1.0' in metrics


@pytest.mark.usefixtures("loud")
async def test_a_stream_tells_it_after_its_sound(server: Server, http: httpx.AsyncClient) -> None:
    give_ears(server.service, "good morning")
    body = {"input": "Good morning.", "verify": True, "stream_format": "sse"}
    events = read_events((await http.post(SPEECH, json=body)).text)
    kinds = [event["type"] for event in events]
    assert kinds[-2:] == ["speech.audio.verification", "speech.audio.done"]
    assert set(kinds[:-2]) == {"speech.audio.delta"}
    assert events[-2]["verification"]["missing"] == []


@pytest.mark.usefixtures("loud")
async def test_what_is_not_heard_is_spoken_again(server: Server, http: httpx.AsyncClient) -> None:
    give_ears(server.service, "good", "good good morning", "good morning")
    body = {"input": "Good morning.", "verify": "retry", "temperature": 0.8, "seed": 7}
    response = await http.post(SPEECH, json=body)
    found = json.loads(response.headers["x-verification"])
    assert (found["attempts"], found["missing"], found["extra"]) == (3, [], [])
    assert [one.seed for one in server.service.solo.counts.requests] == [7, 8, 9]


@pytest.mark.usefixtures("loud")
async def test_the_best_attempt_counts(server: Server, http: httpx.AsyncClient) -> None:
    give_ears(server.service, "good", "good morning everybody my friends", "no")
    item = {"custom_id": "a", "input": "Good morning.", "verify": "retry", "temperature": 0.8}
    response = await http.post(BATCH, json={"requests": [item, {"custom_id": "b", "input": "Hm."}]})
    lines = {line["custom_id"]: line for line in map(json.loads, response.text.splitlines())}
    assert lines["a"]["verification"]["heard"] == "good"
    assert lines["a"]["verification"]["attempts"] == 3
    assert "verification" not in lines["b"]


@pytest.mark.usefixtures("loud")
async def test_a_job_tells_which_sentences_were_not_heard_as_written(
    server: Server, http: httpx.AsyncClient
) -> None:
    give_ears(server.service, "good", "good good morning", "good morning", "good day")
    body = {"input": "Good morning.", "verify": "retry", "temperature": 0.8, "seed": 7}
    made = await http.post(JOBS, json=body)
    assert made.status_code == 200, made.text
    assert made.json()["verification"] == {"words": 0, "missing": 0, "extra": 0}
    id = made.json()["id"]
    (progress,) = [one for one in await follow(http, id) if one["type"] == "job.progress"]
    assert "missing" not in progress
    job = (await http.get(f"{JOBS}/{id}")).json()
    assert (job["status"], job["verification"]) == (
        "completed",
        {"words": 2, "missing": 0, "extra": 0},
    )
    assert [one.seed for one in server.service.solo.counts.requests] == [7, 8, 9]
    fields = {"input": "Good morning. Hello.", "verify": "true"}
    answer = await http.post(JOBS, data=fields, files={"lexicons[]": (None, "")})
    assert answer.status_code == 200, answer.text
    events = [one for one in await follow(http, answer.json()["id"]) if "missing" in one]
    told = [(one["text"], one["missing"], one["extra"]) for one in events]
    assert told == [("Good morning.", ["morning"], []), ("Hello.", ["Hello"], [])]
    job = (await http.get(f"{JOBS}/{answer.json()['id']}")).json()
    assert job["verification"] == {"words": 3, "missing": 2, "extra": 0}
    bad = await http.post(JOBS, json={"input": "Hi.", "verify": "maybe"})
    assert bad.json()["error"]["param"] == "verify"


async def test_what_cannot_be_verified(server: Server, http: httpx.AsyncClient) -> None:
    body: dict[str, Any] = {"input": "Good morning.", "verify": "retry", "stream_format": "sse"}
    error = (await http.post(SPEECH, json=body)).json()["error"]
    assert error["param"] == "verify"
    assert "cannot be spoken again" in error["message"]
    server.service.transcription_models = {}
    for form in ("audio", "sse"):
        body = {"input": "Hm.", "verify": True, "stream_format": form}
        error = (await http.post(SPEECH, json=body)).json()["error"]
        assert error["param"] == "verify"
        assert "this server has none" in error["message"]
    error = (await http.post(JOBS, json={"input": "Hm.", "verify": True})).json()["error"]
    assert error["param"] == "verify"
    assert not server.service.solo.counts.requests
