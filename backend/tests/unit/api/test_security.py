"""Keys, pages of other sites, and limits; all against a real server."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService, eventually
from live_server import Server, running
from socket_client import client
from websockets.exceptions import InvalidStatus

from cantata.api.access.api_keys import ApiKeys
from cantata.api.settings import ReferenceSettings, SecuritySettings, ServerSettings
from sounds import wav

FIRST, SECOND = "first-key-0123456789", "second-key-9876543210"
SPEECH = "/v1/audio/speech"
BODY = {"input": "hello"}
LISTS = ["/v1/models", "/v1/models/solo", "/v1/audio/models", "/v1/audio/voices"]


@asynccontextmanager
async def guarded(
    voices_dir: Path | None = None, **options: Any
) -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    options.setdefault("api_keys", ApiKeys([FIRST, SECOND]))
    settings = ServerSettings(
        security=SecuritySettings(**options), references=ReferenceSettings(voices_dir=voices_dir)
    )
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            yield server, http


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {FIRST}"},
        {"authorization": f"bearer  {SECOND}"},
        {"authorization": f"Token {SECOND}"},
        {"x-api-key": FIRST},
        {"xi-api-key": SECOND},
        {"authorization": "Basic Zm9v", "x-api-key": FIRST},
    ],
)
async def test_every_way_to_show_a_key(headers: dict[str, str]) -> None:
    async with guarded() as (server, http):
        assert (await http.post(SPEECH, json=BODY, headers=headers)).status_code == 200
        async with client(server.socket_url, additional_headers=headers) as socket:
            await socket.configure()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": FIRST},
        {"authorization": f"Basic {FIRST}"},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {FIRST}x"},
        {"authorization": f"Bearer {FIRST[:-1]}"},
        {"authorization": f"Bearer {FIRST},{SECOND}"},
        {"x-api-key": ""},
        {"x-api-key": FIRST.upper()},
        {"cookie": f"x-api-key={FIRST}"},
        {"origin": "null", "authorization": "Bearer \xff"},
    ],
)
async def test_requests_without_a_valid_key_are_rejected(headers: dict[str, str]) -> None:
    async with guarded() as (server, http):
        raw = [(name, value.encode("latin-1")) for name, value in headers.items()]
        refused = await http.post(SPEECH, json=BODY, headers=raw)  # type: ignore[arg-type]
        if "origin" in headers:
            assert refused.status_code == 403
            return
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == 'Bearer realm="cantata"'
        assert refused.headers["x-request-id"].startswith("req_")
        error = refused.json()["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
        assert FIRST not in refused.text
        with pytest.raises(InvalidStatus) as refusal:
            async with client(server.socket_url, additional_headers=headers):
                pass
        assert refusal.value.response.status_code == 401
        assert server.solo.counts.started == 0


async def test_a_key_in_the_address_is_none() -> None:
    async with guarded() as (_, http):
        assert (await http.post(f"{SPEECH}?api_key={FIRST}", json=BODY)).status_code == 401


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        (["cantata", f"cantata-api-key.{FIRST}"], "cantata"),
        (["token", SECOND], "token"),
        (["bearer", SECOND], "bearer"),
    ],
)
async def test_a_browsers_socket_shows_its_key_as_subprotocol(
    offered: list[str], agreed: str
) -> None:
    async with guarded() as (server, _), client(server.socket_url, subprotocols=offered) as socket:
        assert socket.socket.subprotocol == agreed
        await socket.configure()
    async with running(FakeService()) as server:
        await server.app.state.context.lifecycle.settled.wait()
        # A page that has a key also works where none is needed.
        async with client(server.socket_url, subprotocols=offered) as socket:
            assert socket.socket.subprotocol == agreed


@pytest.mark.parametrize(
    "offered", [["cantata"], ["cantata", "cantata-api-key.wrong-0123456789"], ["token"], [FIRST]]
)
async def test_subprotocols_without_a_key_are_rejected(offered: list[str]) -> None:
    async with guarded() as (server, _):
        with pytest.raises(InvalidStatus):
            async with client(server.socket_url, subprotocols=offered):
                pass


async def test_what_is_open() -> None:
    async with guarded() as (_, http):
        for path in ("/health", "/ready", *LISTS):
            assert (await http.get(path)).status_code == 200, path
        for path in ("/metrics", "/docs", "/openapi.json", "/v1/audio/speech", "/v1", "/v1/x"):
            assert (await http.get(path)).status_code == 401, path
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            for path in ("/health", "/v1/audio/voices", "/v1/audio/voices/x", "/"):
                assert (await http.request(method, path)).status_code == 401, (method, path)
        assert (await http.get("/some/page.css")).status_code == 404
    async with guarded(public_lists=False) as (_, http):
        for path in LISTS:
            assert (await http.get(path)).status_code == 401, path
            shown = await http.get(path, headers={"x-api-key": FIRST})
            assert shown.status_code == 200, path


async def test_uploaded_voices_are_listed_only_with_a_key(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, http):
        key = {"x-api-key": FIRST}
        form = {"name": "Ada", "consent": "true"}
        files = {"audio_sample": ("a.wav", wav())}
        made = await http.post("/v1/audio/voices", data=form, files=files, headers=key)
        assert made.status_code == 200
        assert "Ada" not in (await http.get("/v1/audio/voices")).text
        assert "Ada" in (await http.get("/v1/audio/voices", headers=key)).text


async def test_no_key_is_ever_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for clients_own in ("httpx", "httpcore", "websockets.client"):
        caplog.set_level(logging.WARNING, logger=clients_own)
    async with guarded() as (server, http):
        for key in (FIRST, "unknown-0123456789"):
            headers = {"authorization": f"Bearer {key}"}
            await http.post(f"{SPEECH}?api_key={key}", json=BODY, headers=headers)
            offered = ["cantata", f"cantata-api-key.{key}"]
            address = f"{server.socket_url}?api_key={key}"
            try:
                async with client(address, subprotocols=offered) as socket:
                    await socket.configure()
            except InvalidStatus:
                assert key != FIRST
    assert "api-key" not in caplog.text
    assert "0123456789" not in caplog.text
    assert FIRST not in repr(SecuritySettings(api_keys=ApiKeys([FIRST])))


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("{own}", 200),
        ("https://friend.example", 200),
        ("https://evil.example", 403),
        ("http://friend.example", 403),
        ("https://friend.example.evil.example", 403),
        ("https://friend.example:8443", 403),
        ("null", 403),
        ("", 403),
        ("http://127.0.0.1", 403),
        ("{own}0", 403),
    ],
)
async def test_pages_of_other_sites(origin: str | None, status: int) -> None:
    options = {"api_keys": ApiKeys(), "allowed_origins": ("https://friend.example",)}
    async with guarded(**options) as (server, http):  # type: ignore[arg-type]
        headers = {} if origin is None else {"origin": origin.format(own=server.url)}
        answer = await http.post(SPEECH, json=BODY, headers=headers)
        assert answer.status_code == status
        if status == 403:
            assert answer.json()["error"]["code"] == "forbidden"
            with pytest.raises(InvalidStatus):
                async with client(server.socket_url, additional_headers=headers):
                    pass
        else:
            async with client(server.socket_url, additional_headers=headers) as socket:
                await socket.configure()
        # A page can see what it reads only with CORS.
        read = await http.get("/v1/models", headers=headers)
        allowed = read.headers.get("access-control-allow-origin")
        assert allowed == (origin if origin == "https://friend.example" else None)


async def test_a_name_that_was_led_here_is_not_our_own() -> None:
    """DNS rebinding: the page's own name leads to this server."""
    rebound = {"host": "evil.example:8000", "origin": "http://evil.example:8000"}
    async with guarded(api_keys=ApiKeys()) as (_, http):
        assert (await http.post(SPEECH, json=BODY, headers=rebound)).status_code == 403
        local = {"host": "localhost:8000", "origin": "http://localhost:8000"}
        assert (await http.post(SPEECH, json=BODY, headers=local)).status_code == 200
    async with guarded() as (_, http):
        # With keys such a page has no key to send, and servers may have names.
        named = {**rebound, "x-api-key": FIRST}
        assert (await http.post(SPEECH, json=BODY, headers=named)).status_code == 200


async def test_cors() -> None:
    asked = {
        "origin": "https://friend.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type",
    }
    async with guarded(allowed_origins=("https://friend.example",)) as (_, http):
        preflight = await http.options(SPEECH, headers=asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == "https://friend.example"
        refused = await http.post(SPEECH, json=BODY, headers={"origin": asked["origin"]})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "https://friend.example"
        foreign = await http.options(SPEECH, headers={**asked, "origin": "https://evil.example"})
        assert "access-control-allow-origin" not in foreign.headers


@pytest.mark.parametrize(
    "wanted",
    ["content-type,x-stainless-os", "xi-api-key", "openai-organization, x-anything", "x-api-key"],
)
async def test_a_preflight_may_ask_for_any_header_and_for_a_private_network(wanted: str) -> None:
    asked = {
        "origin": "https://friend.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": wanted,
        "access-control-request-private-network": "true",
    }
    async with guarded(allowed_origins=("https://friend.example",)) as (_, http):
        preflight = await http.options(SPEECH, headers=asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-headers"] == wanted
        assert preflight.headers["access-control-allow-private-network"] == "true"
        foreign = await http.options(SPEECH, headers={**asked, "origin": "https://evil.example"})
        assert foreign.status_code == 400
        assert "access-control-allow-origin" not in foreign.headers


async def test_a_key_has_a_number_of_requests() -> None:
    async with guarded(max_concurrent_per_key=2) as (server, http):
        mine, other = {"x-api-key": FIRST}, {"x-api-key": SECOND}
        server.solo.behaviour.first_after_s = 30
        open_ones = [asyncio.create_task(http.post(SPEECH, json=BODY, headers=mine, timeout=60))]
        async with client(server.socket_url, additional_headers=mine) as socket:
            await socket.configure()
            await eventually(lambda: server.solo.counts.open == 1)
            refused = await http.post(SPEECH, json=BODY, headers=mine)
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1
            error = refused.json()["error"]
            assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
            with pytest.raises(InvalidStatus) as full:
                async with client(server.socket_url, additional_headers=mine):
                    pass
            assert full.value.response.status_code == 429
            assert (await http.get("/v1/models", headers=mine)).status_code == 200
            server.solo.behaviour.first_after_s = 0
            assert (await http.post(SPEECH, json=BODY, headers=other)).status_code == 200
        # The place of the socket is free again once the server has seen it close.
        async with asyncio.timeout(60):
            while (await http.post(SPEECH, json=BODY, headers=mine)).status_code == 429:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        open_ones[0].cancel()
        await asyncio.wait(open_ones)
        await eventually(lambda: server.solo.counts.open == 0)


async def test_strangers_bodies_are_not_read() -> None:
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 256 << 20:
            sent += 64 << 10
            yield bytes(64 << 10)

    async with guarded() as (_, http):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # This client reads the response only after sending everything.
        with pytest.raises(httpx.TransportError):
            await http.post(SPEECH, content=pieces())
        assert sent < 64 << 20
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


async def test_an_early_rejection_arrives_and_ends_the_connection() -> None:
    async with guarded() as (server, http):
        refused = await http.post(SPEECH, content=bytes(2 << 20))
        assert (refused.status_code, refused.headers["connection"]) == (401, "close")
        small = await http.post(SPEECH, json=BODY)
        assert (small.status_code, small.headers.get("connection")) == (401, None)
        reader, writer = await asyncio.open_connection(*server.url[len("http://") :].split(":"))
        # The body is announced and never sent.
        writer.write(b"POST /v1/audio/speech HTTP/1.1\r\nhost: a\r\ncontent-length: 99\r\n\r\n")
        async with asyncio.timeout(60):
            assert (await reader.read()).startswith(b"HTTP/1.1 401 ")
        writer.close()


async def test_half_bodies_do_not_lock_a_key_out() -> None:
    async with guarded(max_concurrent_per_key=1) as (server, http):
        key = {"x-api-key": FIRST}
        head = (
            b"POST /v1/audio/speech HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
            b"x-api-key: " + FIRST.encode() + b"\r\ncontent-length: 18\r\n\r\n"
        )
        halves = []
        for _ in range(3):
            halves.append(await asyncio.open_connection(*server.url[len("http://") :].split(":")))
            halves[-1][1].write(head + b'{"input":')
        assert (await http.post(SPEECH, json=BODY, headers=key)).status_code == 200
        # The incomplete requests are now complete, and count.
        server.solo.behaviour.may_sound = asyncio.Event()
        asking = asyncio.create_task(http.post(SPEECH, json=BODY, headers=key))
        await eventually(lambda: server.solo.counts.open == 1)
        halves[0][1].write(b'"hello"} ')
        async with asyncio.timeout(60):
            assert b" 429 " in await halves[0][0].readline()
        server.solo.behaviour.may_sound.set()
        assert (await asking).status_code == 200
        for _, writer in halves:
            writer.close()


@pytest.mark.parametrize("path", ["/v1/audio/voices", "/metrics", "/v1/voices", "/v2/voices", "/x"])
async def test_reading_under_a_foreign_name_is_rejected(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with guarded(api_keys=ApiKeys(), allowed_hosts=("cantata.lan",)) as (server, http):
        for name in (
            "evil.example",
            "evil.example:8000",
            "127.0.0.1.evil.example",
            "localhost.",
            "[",
        ):
            refused = await http.get(path, headers={"host": name})
            assert refused.status_code == 403, name
            body = refused.json()
            assert "--allow-host" in str(body)
        for name in (
            "127.0.0.1",
            "[::1]:80",
            "LOCALHOST:1",
            "a.localhost",
            "cantata.lan:80",
            "10.0.0.1",
        ):
            assert (await http.get(path, headers={"host": name})).status_code != 403, name
        assert (await http.get("/health", headers={"host": "evil.example"})).status_code == 200
        port = server.url.rpartition(":")[2]
        socket_url = f"ws://evil.example:{port}/v1/audio/speech/stream"
        with pytest.raises(InvalidStatus) as refusal:
            async with client(socket_url, host="127.0.0.1"):
                pass
        assert refusal.value.response.status_code == 403
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_other_services_lists_need_a_key() -> None:
    for public in (True, False):
        async with guarded(public_lists=public) as (_, http):
            for path in ("/v1/voices", "/v2/voices"):
                assert (await http.get(path)).status_code == 401
                shown = await http.get(path, headers={"xi-api-key": FIRST})
                assert shown.status_code == 200
