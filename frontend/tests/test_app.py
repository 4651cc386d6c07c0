"""The page as it leaves the server: what it contains, and what it leaves to the API."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Iterator

import brotli
import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException

from cantata_web.app import mount, mount_apart


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI()

    @app.get("/v1/models")
    def models() -> dict[str, str]:
        return {"object": "list"}

    @app.exception_handler(HTTPException)
    def in_own_words(request: Request, error: HTTPException) -> Response:
        return PlainTextResponse(f"the API's own words: {error.status_code}", error.status_code)

    mount(app)
    with TestClient(app) as client:
        yield client


@pytest.fixture(scope="module")
def assets(client: TestClient) -> list[str]:
    """What the page loads, as it names it."""
    page = client.get("/").text
    found = re.findall(r'<(?:link|script)[^>]* (?:href|src)="([^":]+)"', page)
    script = next(name for name in found if name.endswith(".js"))
    worklet = re.findall(r'new URL\("([^"]+)", import\.meta\.url\)', client.get(script).text)
    late = re.findall(r'data-(?:markup|style)="([^"]+)"', page)
    return [*found, *(f"cantata_web/{name}" for name in worklet), *late]


def test_importing_the_module_imports_no_gradio_and_no_backend() -> None:
    code = (
        "import cantata_web.app, sys\n"
        "heavy = {'gradio', 'cantata', 'cantata_models', 'torch'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_page_is_served_beside_the_api(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "Text to speak" in page.text
    assert client.head("/").status_code == 200
    assert client.get("/v1/models").json() == {"object": "list"}


def test_without_scripts_the_page_says_what_is_missing(client: TestClient) -> None:
    page = client.get("/").text
    (shown,) = re.findall(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
    assert "needs JavaScript" in shown
    assert "GET /v1/models" in shown


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 405),
        ("DELETE", "/", 405),
        ("GET", "/cantata_web", 404),
        ("GET", "/cantata_web/", 404),
        ("GET", "/cantata_web/none.js", 404),
        ("GET", "/cantata_web/page.js", 404),
        ("GET", "/cantata_web/../app.py", 404),
        ("POST", "/cantata_web/none.css", 405),
        ("GET", "/v1/nothing", 404),
        ("POST", "/v1/models", 405),
    ],
)
def test_errors_beside_the_page_are_in_the_words_of_the_api(
    client: TestClient, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.text) == (status, f"the API's own words: {status}")


def test_what_the_page_loads_is_kept_forever_and_the_page_is_not(
    client: TestClient, assets: list[str]
) -> None:
    assert {name.rsplit(".", 1)[1] for name in assets} == {"js", "css", "html"}
    late = 8  # tabs, or parts of some, each with a script, markup and a style
    assert len(assets) == 4 + 3 * late, "and script, two worklets, stylesheet"
    for name in assets:
        assert re.fullmatch(r"cantata_web/\w+-[0-9a-f]{16}\.\w+", name)
        answer = client.get(f"/{name}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    page = client.get("/")
    assert page.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("path", "accepted", "language"),
    [
        ("/", "", "en"),
        ("/", "de-AT,de;q=0.9,en;q=0.8", "de"),
        ("/", "en-GB, fr;q=0.9", "en"),
        ("/", "pl, zh-CN;q=0.4, ja;q=0.7", "ja"),
        ("/", "fr;q=0, es;q=0.001", "es"),
        ("/", "*, fr;q=0.5", "en"),
        ("/", "fr;q=high", "en"),
        ("/?lang=es", "de", "es"),
        ("/?lang=ZH-Hans", "de", "zh"),
        ("/?lang=tlh", "de", "en"),
        ("/?lang=", "de", "en"),
    ],
)
def test_the_page_speaks_the_language_that_was_asked_for(
    client: TestClient, path: str, accepted: str, language: str
) -> None:
    page = client.get(path, headers={"Accept-Language": accepted})
    assert f'<html lang="{language}">' in page.text
    assert f'lang="{language}" aria-current="true"' in page.text
    assert "Accept-Language" in page.headers["vary"]
    again = client.get(path, headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == (304 if "?" in path or language == "en" else 200)


def test_a_server_that_was_restarted_has_what_a_page_in_another_language_loads(
    client: TestClient,
) -> None:
    page = client.get("/?lang=de").text
    assert "Text zum Sprechen" in page
    name = re.findall(r'data-markup="(\w+/read[^"]+)"', page)[0]
    app = FastAPI()
    mount(app)
    with TestClient(app) as restarted:
        part = restarted.get(f"/{name}")
        assert "immutable" in part.headers["cache-control"]
        assert "Mitlesen" in part.text
        assert restarted.get("/cantata_web/read.de-0123456789abcdef.html").status_code == 404


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("gzip", "gzip"),
        ("identity", None),
        ("", None),
    ],
)
def test_text_is_compressed_as_the_client_takes_it(
    client: TestClient, assets: list[str], accepted: str, coding: str | None
) -> None:
    decoders = {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}
    for path in ["/", *(f"/{name}" for name in assets)]:
        whole = client.get(path, headers={"Accept-Encoding": "identity"}).content
        with client.stream("GET", path, headers={"Accept-Encoding": accepted}) as answer:
            sent = b"".join(answer.iter_raw())
        assert answer.headers.get("content-encoding") == coding
        assert "Accept-Encoding" in answer.headers["vary"]
        assert decoders[coding](sent) == whole
        assert coding is None or len(sent) < 0.6 * len(whole) or len(whole) < 500


def test_a_page_of_its_own_calls_the_given_server() -> None:
    app = FastAPI()
    mount_apart(app, 'http://speech.example:8000/a"b')
    with TestClient(app) as client:
        page = client.get("/").text
    assert 'data-api-base="http://speech.example:8000/a&quot;b/"' in page
