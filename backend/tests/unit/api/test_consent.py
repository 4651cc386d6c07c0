"""Consents for cloned voices: asked for, checked, kept, shown and deleted with the voice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService, eventually
from fake_transcription import FakeTranscriptionModel
from live_server import running

from cantata.api.settings import ReferenceSettings, ServerSettings
from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import ConsentMissing
from cantata.contract.data.transcripts import TranscribedWord, Transcript, TranscriptionRequest
from cantata.references.consent import ConsentMode, Statements, check_attestation
from sounds import data_url, wav

VOICES = "/v1/audio/voices"


class Ears(FakeTranscriptionModel):
    """Hears one text, whatever is said."""

    said = ""

    def transcript(self, seconds: float, request: TranscriptionRequest) -> Transcript:
        words = tuple(TranscribedWord(one, 0, 1, 0.9) for one in self.said.split())
        return Transcript(self.said, "en", words, (), -0.1, 0.0, 0.0, seconds)


@pytest.fixture
def loud(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tones count as speech."""
    monkeypatch.setattr(
        "cantata.speech_input.vad.SileroJudge.compute_probability", lambda self, window: 1.0
    )


@asynccontextmanager
async def asking(folder: Path, consent: ConsentMode) -> AsyncIterator[tuple[Any, Ears]]:
    """A client of a server that asks for this consent, and what that server hears with."""
    service = FakeService()
    service.solo.capabilities = Capabilities(references=True)
    ears = Ears("ears")
    service.transcription_models = {"ears": ears}
    references = ReferenceSettings(voices_dir=folder / "voices", consent=consent)
    async with (
        running(service, ServerSettings(references=references)) as server,
        httpx.AsyncClient(base_url=server.url, timeout=30) as http,
    ):
        await eventually(lambda: service.ready)
        yield http, ears


async def send(
    http: httpx.AsyncClient, spoken: bytes | None = None, **form: str
) -> tuple[int, dict[str, Any]]:
    files = {"audio_sample": ("a.wav", wav(), "audio/wav")}
    if spoken is not None:
        files["consent_audio"] = ("b.wav", spoken, "audio/wav")
    answer = await http.post(VOICES, data={"name": "Ada", "consent": "true", **form}, files=files)
    return answer.status_code, answer.json()


async def test_a_person_answers_for_a_voice_by_name(tmp_path: Path) -> None:
    async with asking(tmp_path, "attest") as (http, _):
        asked = (await http.post(f"{VOICES}/consents")).json()
        assert (asked["mode"], asked["id"]) == ("attest", None)
        for form in ({}, {"attested_by": " "}, {"attested_by": "7"}):
            status, body = await send(http, None, **form)
            assert (status, body["error"]["code"]) == (400, "consent_required")
            assert body["error"]["param"] == "attested_by"
        status, made = await send(http, attested_by="  Grace   Hopper ")
        assert status == 200
        kept = made["consent"]
        assert (kept["kind"], kept["by"]) == ("attest", "Grace Hopper")
        assert kept["statement"] == asked["statement"]
        listed = (await http.get(VOICES)).json()["voices"]
        assert [one["consent"] for one in listed if one["kind"] == "uploaded"] == [kept]
        assert "Grace Hopper" in (tmp_path / "voices" / made["id"] / "voice.json").read_text()
        await http.delete(f"{VOICES}/Ada")
        assert list((tmp_path / "voices").iterdir()) == []


async def test_recordings_in_requests_need_it_too(tmp_path: Path) -> None:
    body = {"input": "hi", "response_format": "pcm", "ref_audio": data_url(wav())}
    async with asking(tmp_path, "attest") as (http, _):
        refused = await http.post("/v1/audio/speech", json=body)
        assert refused.json()["error"]["code"] == "consent_required"
        spoken = await http.post("/v1/audio/speech", json={**body, "attested_by": "Grace"})
        assert spoken.status_code == 200
    async with asking(tmp_path, "spoken") as (http, _):
        refused = await http.post("/v1/audio/speech", json={**body, "attested_by": "Grace"})
        assert refused.json()["error"]["code"] == "consent_required"
        assert refused.json()["error"]["param"] == "ref_audio"


@pytest.mark.usefixtures("loud")
async def test_a_speaker_consents_aloud(tmp_path: Path) -> None:
    async with asking(tmp_path, "spoken") as (http, ears):
        form = {"attested_by": "Ada Lovelace"}
        status, body = await send(http, None, **form)
        assert (status, body["error"]["param"]) == (400, "consent_id")

        async def statement() -> dict[str, Any]:
            asked: dict[str, Any] = (await http.post(f"{VOICES}/consents")).json()
            return asked

        asked = await statement()
        ears.said = asked["statement"].lower().replace("computer", "commuter")
        other_speaker = wav(rate=16_000)
        for spoken, said, code in (
            (wav(), "something else", "consent_refused"),
            (other_speaker, ears.said, "consent_refused"),
        ):
            once, ears.said = await statement(), said
            status, body = await send(http, spoken, consent_id=once["id"], **form)
            assert (status, body["error"]["code"]) == (400, code)
            assert body["error"]["param"] == "consent_audio"
        ears.said = asked["statement"].lower().replace("computer", "commuter")
        status, made = await send(http, wav(), consent_id=asked["id"], **form)
        assert status == 200, made
        assert (made["consent"]["kind"], made["consent"]["by"]) == ("spoken", "Ada Lovelace")
        assert made["consent"]["heard"].split()[0] == "i"
        await http.delete(f"{VOICES}/Ada")
        status, body = await send(http, wav(), consent_id=asked["id"], **form)
        assert (status, body["error"]["code"]) == (400, "consent_required")


async def test_without_the_option_nothing_more_is_asked(tmp_path: Path) -> None:
    async with asking(tmp_path, "none") as (http, _):
        assert (await http.post(f"{VOICES}/consents")).json()["mode"] == "none"
        status, made = await send(http)
        assert (status, made["consent"]) == (200, None)


def test_statements_are_spoken_once_in_time_and_with_their_own_words() -> None:
    now = [0.0]
    statements = Statements(clock=lambda: now[0])
    first, second = statements.make(), statements.make()
    assert first.text != second.text
    words = [(word, True) for word in first.text.split()]
    assert first.is_heard_in(words)
    of_another = [(w, w.strip(".,").casefold() not in first.words) for w, _ in words]
    assert not first.is_heard_in(of_another)
    assert not first.is_heard_in([(word, number > 8) for number, (word, _) in enumerate(words)])
    assert statements.take(first.id) == first
    now[0] = 601.0
    for id in (first.id, second.id, "nonsense"):
        with pytest.raises(ConsentMissing):
            statements.take(id)


@pytest.mark.parametrize("name", [None, "", "x", "1234", "a" * 101, "Eve\u0000Eve"])
def test_what_is_no_name(name: str | None) -> None:
    with pytest.raises(ConsentMissing):
        check_attestation(name)
