"""Lexicons over HTTP: kept, named by requests, default for a voice, ElevenLabs' routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fake_service import FakeService, eventually
from live_server import Server, running
from socket_client import client

from cantata.api.app import create_app
from cantata.api.settings import ReferenceSettings, ServerSettings
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import LexiconEntry
from cantata.lexicons.pls import read_pls

FILE = b"""<lexicon version="1.0" alphabet="ipa">
<lexeme><grapheme>SQL</grapheme><alias>sequel</alias></lexeme>
<lexeme><grapheme>cat</grapheme><phoneme>k\xc3\xa6t</phoneme></lexeme></lexicon>"""
SQL = LexiconEntry("SQL", alias="sequel")
LEXICONS = "/v1/lexicons"


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(
        max_body_bytes=64 << 10, references=ReferenceSettings(lexicons_dir=tmp_path / "lexicons")
    )


@pytest.fixture
async def server(settings: ServerSettings) -> AsyncIterator[Server]:
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


async def upload(
    http: httpx.AsyncClient, name: str = "names", file: bytes = FILE, to: str = LEXICONS
) -> httpx.Response:
    return await http.post(to, data={"name": name}, files={"file": ("a.pls", file)})


async def test_life_of_a_lexicon(
    server: Server, http: httpx.AsyncClient, settings: ServerSettings
) -> None:
    made = (await upload(http)).json()
    assert (made["name"], made["entry_count"]) == ("names", 2)
    assert (await http.get(LEXICONS)).json()["lexicons"] == [made]
    entries = (await http.get(f"{LEXICONS}/names")).json()["entries"]
    assert entries[0] == {"grapheme": "SQL", "alias": "sequel", "phones": ""}
    again = await upload(http)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "lexicon_exists")
    async with (
        running(FakeService(), settings) as other,  # after a restart
        httpx.AsyncClient(base_url=other.url) as later,
    ):
        assert (await later.get(LEXICONS)).json()["lexicons"] == [made]
    assert (await http.delete(f"{LEXICONS}/{made['id']}")).json()["deleted"]
    gone = await http.get(f"{LEXICONS}/names")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "lexicon_not_found")
    folder = settings.references.lexicons_dir
    assert folder is not None
    assert list(folder.iterdir()) == []


async def test_requests_carry_the_entries_that_their_texts_have(
    server: Server, http: httpx.AsyncClient
) -> None:
    await upload(http)
    speech = {"input": "Learn SQL.", "lexicons": ["names"], "response_format": "pcm"}
    assert (await http.post("/v1/audio/speech", json=speech)).status_code == 200
    assert server.solo.counts.requests[-1].lexicon == (SQL,)
    answer = await http.post("/v1/audio/speech", json={**speech, "input": "a cat"})
    assert answer.headers["x-ignored"] == "lexicon:phoneme"
    named = {"input": '<speak><lexicon uri="names"/>SQL</speak>', "response_format": "pcm"}
    assert (await http.post("/v1/audio/speech", json=named)).status_code == 200
    assert server.solo.counts.requests[-1].lexicon == (SQL,)
    locators = [{"pronunciation_dictionary_id": "names"}]
    body = {"text": "SQL", "pronunciation_dictionary_locators": locators}
    assert (await http.post("/v1/text-to-speech/clara", json=body)).status_code == 200
    assert server.solo.counts.requests[-1].lexicon == (SQL,)
    async with client(server.socket_url) as c:
        await c.configure(lexicons=["names"])
        await c.send("input.text", text="SQL")
        await c.send("input.done")
        await c.until("audio.done")
    assert server.solo.counts.requests[-1].lexicon == (SQL,)


@pytest.mark.parametrize(
    ("file", "status", "code"),
    [
        (b"<lexicon><lexeme/></lexicon>", 400, "invalid_lexicon"),
        (b'<!DOCTYPE l [<!ENTITY a "b">]>' + FILE, 400, "invalid_lexicon"),
        (FILE + b" " * (64 << 10), 413, "body_too_large"),
    ],
)
async def test_a_bad_file_is_refused(
    server: Server, http: httpx.AsyncClient, file: bytes, status: int, code: str
) -> None:
    answer = await upload(http, file=file)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert (await http.get(LEXICONS)).json()["lexicons"] == []


async def test_an_unknown_lexicon_is_named_with_those_that_there_are(
    server: Server, http: httpx.AsyncClient
) -> None:
    await upload(http)
    uri = {"input": '<lexicon uri="https://example.com/a.pls"/>a'}
    for body in ({"input": "a", "lexicons": ["other"]}, uri):
        answer = await http.post("/v1/audio/speech", json=body)
        assert answer.status_code == 404
        assert "kept: names" in answer.json()["error"]["message"]


async def test_elevenlabs_routes(server: Server, http: httpx.AsyncClient) -> None:
    route = "/v1/pronunciation-dictionaries"
    made = (await upload(http, to=f"{route}/add-from-file")).json()
    assert (made["version_rules_num"], made["version_id"]) == (2, made["id"])
    listed = (await http.get(route)).json()
    assert listed["pronunciation_dictionaries"] == [made]
    assert (await http.get(f"{route}/{made['id']}")).json() == made
    file = await http.get(f"{route}/{made['id']}/{made['version_id']}/download")
    assert file.headers["content-type"] == "application/pls+xml"
    assert read_pls(file.content) == read_pls(FILE)
    for path in (f"{route}/{made['id']}/other/download", f"{route}/none/none/download"):
        assert (await http.get(path)).status_code == 404
    missing = await http.get(f"{route}/none")
    assert missing.json()["detail"]["status"] == "lexicon_not_found"


async def test_elevenlabs_rules_become_a_lexicon(server: Server, http: httpx.AsyncClient) -> None:
    route = "/v1/pronunciation-dictionaries/add-from-rules"
    alias = {"type": "alias", "string_to_replace": " A&W ", "alias": "ay and  double you"}
    phones = {
        "type": "phoneme",
        "string_to_replace": "pecan",
        "phoneme": "P AH0 K AA1 N",
        "alphabet": "cmu-arpabet",
    }
    made = await http.post(route, json={"name": "rules", "rules": [alias, phones]})
    assert made.json()["version_rules_num"] == 2
    kept = (await http.get(f"{LEXICONS}/rules")).json()["entries"]
    assert kept == [
        {"grapheme": "A&W", "alias": "ay and double you", "phones": ""},
        {"grapheme": "pecan", "alias": "", "phones": "p\u0259k\u02c8\u0251n"},
    ]
    version = made.json()["id"]
    file = await http.get(f"/v1/pronunciation-dictionaries/rules/{version}/download")
    assert [one.grapheme for one in read_pls(file.content)] == ["A&W", "pecan"]
    bad: list[tuple[list[dict[str, str]], str]] = [
        ([], "rules"),
        ([{**alias, "alias": " "}], "alias"),
        ([{**alias, "type": "other"}], "rules"),
        ([{**phones, "phoneme": "QQ"}], "rule for 'pecan': 'QQ'"),
        ([{**alias, "alias": "A&W"}], "lead to each other"),
    ]
    for rules, named in bad:
        answer = await http.post(route, json={"name": "bad", "rules": rules})
        assert answer.status_code == 400, rules
        assert named in answer.json()["detail"]["message"]


async def test_a_voice_has_a_lexicon(
    server: Server, settings: ServerSettings, http: httpx.AsyncClient
) -> None:
    await upload(http)
    chosen = ServerSettings(references=settings.references, lexicons=(("ben", "names"),))
    service = FakeService()
    async with running(service, chosen) as other:
        await eventually(lambda: service.ready)
        async with httpx.AsyncClient(base_url=other.url) as later:
            for voice, lexicon in (("ben", (SQL,)), ("clara", ())):
                body = {"input": "SQL", "voice": voice, "response_format": "pcm"}
                await later.post("/v1/audio/speech", json=body)
                assert other.solo.counts.requests[-1].lexicon == lexicon
    with pytest.raises(ConfigError, match="no lexicon 'other'"):
        create_app(
            FakeService(), ServerSettings(references=settings.references, lexicons=(("", "other"),))
        )
