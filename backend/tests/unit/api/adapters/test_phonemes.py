"""Kokoro-FastAPI's routes of phones and mixtures, as its clients call them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from fake_service import expected_pcm
from live_server import Server

from cantata.audio.pcm import encode_s16le


def give(server: Server, **able: Any) -> None:
    server.solo.capabilities = replace(server.solo.capabilities, **able)


async def test_a_text_s_phones(server: Server, http: httpx.AsyncClient) -> None:
    give(server, phonemizes=True)
    for fields in ({}, {"language": "a"}, {"language": "en"}):
        answer = await http.post("/dev/phonemize", json={"text": "hello", **fields})
        assert answer.json() == {"phonemes": "/hello/", "tokens": []}
    wrong = await http.post("/dev/phonemize", json={"text": "hello", "language": "q"})
    assert wrong.status_code == 400
    assert "valid: a, en" in wrong.json()["error"]["message"]


@pytest.mark.parametrize("fields", [{"text": ""}, {"text": " "}, {}, {"text": "a", "model": "no"}])
async def test_texts_without_phones(
    server: Server, http: httpx.AsyncClient, fields: dict[str, str]
) -> None:
    give(server, phonemizes=True)
    answer = await http.post("/dev/phonemize", json=fields)
    assert answer.status_code in (400, 404), answer.text
    assert answer.json()["error"]["message"]


async def test_a_model_that_says_no_phones(http: httpx.AsyncClient) -> None:
    for fields, message in (
        ({}, "no served model says"),
        ({"model": "solo"}, "model 'solo' does not say"),
    ):
        answer = await http.post("/dev/phonemize", json={"text": "hello", **fields})
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (error["param"], error["code"]) == ("model", "invalid_value")
        assert message in error["message"]


async def test_phones_are_spoken(server: Server, http: httpx.AsyncClient) -> None:
    give(server, phones=True)
    body = {"phonemes": "həlO, wɜɹld!", "voice": "af_bella"}
    answer = await http.post("/dev/generate_from_phonemes", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/wav"
    text = "[[həlO]], [[wɜɹld]]!"
    assert server.solo.counts.requests[-1].text == text
    assert answer.content.endswith(encode_s16le(expected_pcm(text, server.solo.behaviour)))


@pytest.mark.parametrize(
    ("phones", "fields", "param"),
    [
        (True, {"phonemes": "...", "voice": "clara"}, "phonemes"),
        (True, {"phonemes": "a]] b", "voice": "clara"}, "phonemes"),
        (True, {"phonemes": "a " * 60_000, "voice": "clara"}, "input"),
        (True, {"phonemes": "a", "voice": "bob"}, "voice"),
        (True, {"phonemes": "a"}, "voice"),
        (False, {"phonemes": "a", "voice": "clara"}, "model"),
    ],
)
async def test_phones_that_are_not_spoken(
    server: Server, http: httpx.AsyncClient, phones: bool, fields: dict[str, str], param: str
) -> None:
    give(server, phones=phones)
    answer = await http.post("/dev/generate_from_phonemes", json=fields)
    assert answer.status_code in (400, 404), answer.text
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize("voices", ["clara(2)+ben(1)", ["clara(2)", "ben(1)"]])
async def test_a_mixture_is_a_name(
    server: Server, http: httpx.AsyncClient, voices: str | list[str]
) -> None:
    give(server, voice_blends=True)
    answer = await http.post("/v1/audio/voices/combine", json=voices)
    assert answer.status_code == 403
    assert "'clara(2)+ben(1)'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("voices", ["clara+bob", "bob", "", [], 3])
async def test_mixtures_of_no_voices(
    server: Server, http: httpx.AsyncClient, voices: object
) -> None:
    give(server, voice_blends=True)
    answer = await http.post("/v1/audio/voices/combine", json=voices)
    assert answer.status_code in (400, 404), answer.text
    assert answer.json()["error"]["message"]


async def test_voices_as_old_clients_read_them(http: httpx.AsyncClient) -> None:
    listed = (await http.get("/v1/audio/voices")).json()["voices"]
    names = (await http.get("/v1/audio/voices?legacy=true")).json()["voices"]
    assert names
    assert names == [voice["id"] for voice in listed]
    assert all(voice["name"] for voice in listed)
