"""Who may delete an uploaded voice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService, eventually
from live_server import running

from cantata.api.access.api_keys import ApiKeys, is_local_program
from cantata.api.settings import ReferenceSettings, SecuritySettings, ServerSettings
from sounds import wav

VOICES = "/v1/audio/voices"
KEY = "the-key-0123456789"
PROXIED = {"x-forwarded-for": "203.0.113.7"}
"""As a reverse proxy on this machine forwards a client from elsewhere."""


@asynccontextmanager
async def serving(folder: Path, *keys: str) -> AsyncIterator[httpx.AsyncClient]:
    settings = ServerSettings(
        references=ReferenceSettings(voices_dir=folder),
        security=SecuritySettings(api_keys=ApiKeys(keys)),
    )
    service = FakeService()
    async with (
        running(service, settings) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        await eventually(lambda: service.ready)
        http.headers.update({"x-api-key": keys[0]} if keys else {})
        yield http


async def upload(http: httpx.AsyncClient, name: str = "Ada") -> dict[str, Any]:
    form = {"name": name, "consent": "true"}
    answer = await http.post(VOICES, data=form, files={"audio_sample": ("a.wav", wav())})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def of_a_page(http: httpx.AsyncClient) -> dict[str, str]:
    return {"origin": str(http.base_url).rstrip("/")}


def words_on_disk(folder: Path) -> Path:
    (words,) = folder.glob("*/voice.json")
    return words


async def is_kept(http: httpx.AsyncClient, name: str = "Ada") -> bool:
    listed = (await http.get(VOICES)).json()["voices"]
    return name in {voice["name"] for voice in listed}


async def test_the_token_deletes_its_voice_and_no_other(tmp_path: Path) -> None:
    async with serving(tmp_path) as http:
        ada, bea = await upload(http), await upload(http, "Bea")
        page = of_a_page(http)
        assert ada["deletion_token"] != bea["deletion_token"]
        for token in (None, "", bea["deletion_token"], ada["deletion_token"][:-1], "\u00e9"):
            headers = {name.encode(): value.encode() for name, value in page.items()}
            if token is not None:
                headers[b"x-deletion-token"] = token.encode()
            for name in ("Ada", ada["id"]):
                refused = await http.delete(f"{VOICES}/{name}", headers=headers)
                error = refused.json()["error"]
                assert (refused.status_code, error["code"]) == (403, "forbidden")
                assert "x-deletion-token" in error["message"]
        assert await is_kept(http)
        shown = {"x-deletion-token": ada["deletion_token"]}
        gone = await http.delete(f"{VOICES}/{ada['id']}", headers={**page, **shown})
        assert gone.status_code == 200, gone.text
        assert not await is_kept(http)
        assert await is_kept(http, "Bea")


async def test_clients_from_elsewhere_need_the_token(tmp_path: Path) -> None:
    async with serving(tmp_path) as http:
        voice = await upload(http)
        refused = await http.delete(f"{VOICES}/Ada", headers=PROXIED)
        assert refused.status_code == 403
        shown = {"x-deletion-token": voice["deletion_token"]}
        assert (await http.delete(f"{VOICES}/Ada", headers={**PROXIED, **shown})).status_code == 200


async def test_programs_on_the_servers_machine_need_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as http:
        await upload(http)
        assert (await http.delete(f"{VOICES}/Ada")).status_code == 200


async def test_a_key_deletes_every_voice(tmp_path: Path) -> None:
    async with serving(tmp_path, KEY) as http:
        await upload(http)
        headers = {**PROXIED, **of_a_page(http)}
        assert (await http.delete(f"{VOICES}/Ada", headers=headers)).status_code == 200


async def test_tokens_outlive_a_restart_and_are_not_on_disk(tmp_path: Path) -> None:
    async with serving(tmp_path) as http:
        voice = await upload(http)
    token = voice["deletion_token"]
    words = words_on_disk(tmp_path)
    assert token not in words.read_text(encoding="utf-8")
    async with serving(tmp_path) as http:
        assert token not in (await http.get(VOICES)).text
        headers = {**of_a_page(http), "x-deletion-token": token}
        assert (await http.delete(f"{VOICES}/Ada", headers=headers)).status_code == 200


async def test_a_voice_from_before_tokens_is_kept_from_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as http:
        await upload(http)
    words = words_on_disk(tmp_path)
    lines = words.read_text(encoding="utf-8").splitlines()
    without = [line for line in lines if "deletion_digest" not in line]
    assert len(without) < len(lines)
    words.write_text("\n".join(without).replace(",\n}", "\n}"), encoding="utf-8")
    async with serving(tmp_path) as http:
        assert await is_kept(http)
        headers = {**of_a_page(http), "x-deletion-token": "None"}
        assert (await http.delete(f"{VOICES}/Ada", headers=headers)).status_code == 403
        assert (await http.delete(f"{VOICES}/Ada")).status_code == 200


async def test_a_page_of_an_allowed_site_may_send_the_token(tmp_path: Path) -> None:
    site = "https://app.example"
    settings = ServerSettings(
        references=ReferenceSettings(voices_dir=tmp_path),
        security=SecuritySettings(allowed_origins=(site,)),
    )
    async with running(FakeService(), settings) as server:
        asked = {"origin": site, "access-control-request-method": "DELETE"}
        asked["access-control-request-headers"] = "x-deletion-token"
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            allowed = await http.options(f"{VOICES}/x", headers=asked)
    assert allowed.status_code == 200
    assert "x-deletion-token" in allowed.headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:203.0.113.7", False),
        ("192.168.1.4", False),
        ("0.0.0.0", False),
        ("localhost", False),
        ("", False),
        (None, False),
    ],
)
def test_which_addresses_are_this_machine(host: str | None, local: bool) -> None:
    scope: dict[str, Any] = {
        "type": "http",
        "headers": [],
        "client": None if host is None else (host, 5),
    }
    assert is_local_program(scope) is local
    scope["headers"] = [(b"origin", b"http://127.0.0.1:8000")]
    assert not is_local_program(scope)
