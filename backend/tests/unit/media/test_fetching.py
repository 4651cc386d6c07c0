"""Fetching from untrusted URLs, against a real server on this machine."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network

import pytest

from cantata.contract.data.errors import InvalidAudio, PayloadTooLarge
from cantata.media.fetching import Fetcher, FetchLimits, resolve
from cantata.media.kinds import AUDIO, IMAGE, VIDEO

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
FILE = b"RIFF" + bytes(range(256)) * 8
HERE = "127.0.0.1"


class Web:
    """A server with a given response for each path, which records its requests."""

    def __init__(self) -> None:
        self.port = 0
        self.pages: dict[str, Answer] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []

    def url(self, path: str, host: str = HERE) -> str:
        return f"http://{host}:{self.port}{path}"

    def page(self, path: str, body: bytes, *headers: str, status: str = "200 OK") -> str:
        head = "\r\n".join((f"HTTP/1.1 {status}", *headers, "connection: close", "", ""))

        async def answer(writer: asyncio.StreamWriter) -> None:
            writer.write(head.encode() + body)
            await writer.drain()

        self.pages[path] = answer
        return self.url(path)

    def redirect(self, path: str, target: str) -> str:
        return self.page(path, b"", f"location: {target}", status="302 Found")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")
            path = lines[0].split()[1]
            headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
            self.requests.append((path, headers))
            await self.pages[path](writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@dataclass(frozen=True)
class Fetching:
    """A fetcher as one field of a request uses it."""

    fetcher: Fetcher

    async def fetch(self, url: str) -> bytes:
        return await self.fetcher.fetch(url, AUDIO, "ref_audio", 10_000)


@asynccontextmanager
async def serving() -> AsyncIterator[Web]:
    web = Web()
    server = await asyncio.start_server(web.serve, HERE, 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with serving() as web:
        yield web


def fetcher(
    web: Web, resolver: Callable[[str, int], Awaitable[list[str]]] = resolve, **limits: object
) -> Fetching:
    """A fetcher that may reach this machine, which no configuration allows."""
    options: dict[str, object] = {
        "ports": frozenset({80, 443, web.port}),
        "allowed_networks": (ip_network(f"{HERE}/32"),),
        **limits,
    }
    return Fetching(Fetcher(FetchLimits(**options), resolver))  # type: ignore[arg-type]


async def test_errors_are_those_of_what_was_expected(web: Web) -> None:
    fetching = fetcher(web).fetcher
    for kind in (IMAGE, VIDEO):
        with pytest.raises(kind.error, match="the URL in field must begin") as refusal:
            await fetching.fetch("ftp://a/", kind, "field", 10)
        assert refusal.value.param == "field"


async def test_a_file_is_fetched(web: Web) -> None:
    url = web.page("/a.wav?x=1", FILE, f"content-length: {len(FILE)}")
    assert await fetcher(web).fetch(url + "#part") == FILE
    ((path, headers),) = web.requests
    assert path == "/a.wav?x=1"
    assert headers["host"] == f"{HERE}:{web.port}"
    assert headers["accept-encoding"] == "identity"
    assert not {"authorization", "cookie"} & headers.keys()


async def test_redirects_are_followed_three_times(web: Web) -> None:
    web.page("/4", FILE)
    for step in (1, 2, 3):
        web.redirect(f"/{step}", f"/{step + 1}")
    assert await fetcher(web).fetch(web.url("/1")) == FILE
    web.redirect("/0", "/1")
    with pytest.raises(InvalidAudio, match="redirects more than 3 times"):
        await fetcher(web).fetch(web.url("/0"))


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://2852039166/",
        "http://0/",
        "//127.0.0.2/",
    ],
)
async def test_a_redirect_to_a_near_address_is_rejected(web: Web, target: str) -> None:
    with pytest.raises(InvalidAudio, match="not public"):
        await fetcher(web).fetch(web.redirect("/", target))


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("file:///etc/passwd", "must begin with http"),
        ("ftp://127.0.0.1/a", "must begin with http"),
        ("http://127.0.0.1:22/", "port that is not allowed"),
        ("http://user:pass@127.0.0.1/", "user name"),
    ],
)
async def test_a_redirect_is_checked_like_any_url(web: Web, target: str, says: str) -> None:
    with pytest.raises(InvalidAudio, match=says):
        await fetcher(web).fetch(web.redirect("/", target))


async def test_a_name_whose_address_changes_is_rejected(web: Web) -> None:
    """DNS rebinding: first an allowed address, then a forbidden one."""
    answers = [[HERE], ["10.0.0.1"], [HERE]]
    asked: list[str] = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    web.page("/file", FILE)
    url = web.url("/file", host="rebind.example")
    assert await fetcher(web, resolver).fetch(url) == FILE
    # One look-up: the checked address is the one connected to.
    assert asked == ["rebind.example"]
    assert web.requests[0][1]["host"] == f"rebind.example:{web.port}"
    with pytest.raises(InvalidAudio, match="not public"):
        await fetcher(web, resolver).fetch(url)
    answers[2:] = [[HERE], ["127.0.0.2"]]
    with pytest.raises(InvalidAudio, match="not public"):
        await fetcher(web, resolver).fetch(
            web.redirect("/again", "/file").replace(HERE, "rebind.example")
        )
    assert [path for path, _ in web.requests] == ["/file", "/again"]


async def test_one_near_address_among_public_ones_is_enough(web: Web) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return [HERE, "192.168.0.1"]

    with pytest.raises(InvalidAudio, match="not public"):
        await fetcher(web, resolver).fetch(web.page("/", FILE))
    assert web.requests == []


async def test_this_machine_is_not_reached_by_default(web: Web) -> None:
    limits = FetchLimits(ports=frozenset({web.port}))
    for host in (HERE, "localhost"):
        with pytest.raises(InvalidAudio, match="not public"):
            await Fetching(Fetcher(limits)).fetch(web.page("/", FILE).replace(HERE, host))
    assert web.requests == []


@pytest.mark.parametrize(
    "headers", [("content-length: 50000",), (), ("transfer-encoding: chunked",)]
)
async def test_too_large(web: Web, headers: tuple[str, ...]) -> None:
    chunk = b"8000\r\n" + bytes(0x8000) + b"\r\n" if "chunked" in str(headers) else bytes(50_000)
    with pytest.raises(PayloadTooLarge, match="larger than 10000 bytes"):
        await fetcher(web).fetch(web.page("/", chunk, *headers))


async def test_an_endless_body_is_cut_off(web: Web) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(bytes(1000))
            await writer.drain()

    web.pages["/"] = endless
    with pytest.raises(PayloadTooLarge):
        await fetcher(web).fetch(web.url("/"))


async def test_too_slow(web: Web) -> None:
    """Each byte comes in time, the whole does not."""

    async def trickle(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    web.pages["/"] = trickle
    with pytest.raises(InvalidAudio, match=r"took longer than 0\.5 s"):
        await fetcher(web, total_s=0.5).fetch(web.url("/"))


async def test_silence(web: Web) -> None:
    async def silence(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    web.pages["/"] = silence
    with pytest.raises(InvalidAudio, match="cannot be reached"):
        await fetcher(web, connect_s=0.2).fetch(web.url("/"))


async def test_a_compressed_body_is_not_unpacked(web: Web) -> None:
    bomb = gzip.compress(bytes(20 << 20))
    assert len(bomb) > 10_000
    url = web.page("/", gzip.compress(bytes(1 << 20)), "content-encoding: gzip")
    with pytest.raises(InvalidAudio, match="compressed"):
        await fetcher(web).fetch(url)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://", "has no host"),
        ("http:///a", "has no host"),
        ("http://a b/", "percent-encoded"),
        ("http://a\\@127.0.0.1/", "percent-encoded"),
        ("http://a\r\nx: y/", "percent-encoded"),
        ("http://\u00e4/", "percent-encoded"),
        ("http://[::1/", "not a valid URL"),
        ("http://a:99999/", "not a valid URL"),
        ("http://a:8080/", "port that is not allowed; valid: 80, 443"),
        ("http://user@a/", "user name"),
        ("http://@a/", "user name"),
        ("gopher://a/", "must begin with http"),
        ("http://a/" + "x" * 2048, "longer than 2048"),
        ("http://nothing.invalid/", "cannot be found"),
    ],
)
async def test_urls_that_are_not_fetched(url: str, says: str) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        raise OSError

    with pytest.raises(InvalidAudio, match=says) as refusal:
        await Fetching(Fetcher(FetchLimits(), resolver)).fetch(url)
    assert refusal.value.param == "ref_audio"


@pytest.mark.parametrize("status", ["404 Not Found", "206 Partial Content", "500 Broken"])
async def test_other_answers_are_errors(web: Web, status: str) -> None:
    with pytest.raises(InvalidAudio, match=f"status {status[:3]}"):
        await fetcher(web).fetch(web.page("/", FILE, status=status))


async def test_nonsense_instead_of_http(web: Web) -> None:
    async def nonsense(writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        await writer.drain()

    web.pages["/"] = nonsense
    with pytest.raises(InvalidAudio, match="did not answer in HTTP"):
        await fetcher(web).fetch(web.url("/"))
