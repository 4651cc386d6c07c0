"""The page as it leaves the server: what it contains, and what it leaves to the API."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from posixpath import dirname, normpath
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException

from cantata_web.app import HERE, _mount, mount


def mounted(app: FastAPI, api_base: str = "") -> FastAPI:
    """`app` with the page on it, mounted inside a loop: without one Gradio makes its own and leaves
    it open, which would be a warning here."""

    async def mount_page() -> None:
        _mount(app, api_base) if api_base else mount(app)

    asyncio.run(mount_page())
    return app


def config_of(page: str) -> dict[str, Any]:
    found = re.search(r"window\.gradio_config = (.*?);</script>", page)
    assert found
    return dict(json.loads(found[1]))


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI()

    @app.get("/v1/models")
    def models() -> dict[str, str]:
        return {"object": "list"}

    @app.exception_handler(HTTPException)
    def in_own_words(request: Request, error: HTTPException) -> Response:
        return PlainTextResponse(f"the API's own words: {error.status_code}", error.status_code)

    with TestClient(mounted(app)) as client:
        yield client


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
    assert "Text to speak" in page.text
    assert client.get("/v1/models").json() == {"object": "list"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 405),
        ("DELETE", "/theme.css", 405),
        ("GET", "/static", 404),
        ("GET", "/static/", 404),
        ("GET", "/static/none.css", 404),
        ("GET", "/assets/none.js", 404),
        ("POST", "/static/none.css", 405),
    ],
)
def test_errors_beside_the_page_are_in_the_words_of_the_api(
    client: TestClient, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.text) == (status, f"the API's own words: {status}")


def test_the_page_sends_no_telemetry(client: TestClient) -> None:
    page = client.get("/").text
    assert config_of(page)["analytics_enabled"] is False
    assert "googleapis" not in page + client.get("/theme.css").text


def test_what_is_not_the_pages_is_left_to_the_api(client: TestClient) -> None:
    assert client.get("/v1/nothing").text.startswith("the API's own words")
    assert client.post("/v1/models").status_code == 405
    upload = client.post("/gradio_api/upload", files={"files": ("a.bin", b"0123456789")})
    assert upload.text.startswith("the API's own words")


def test_every_imported_script_is_served_and_revalidated(client: TestClient) -> None:
    seen, wanted = set(), {"page.js", "player/worklet.js"}
    while wanted:
        name = wanted.pop()
        seen.add(name)
        script = client.get(f"/cantata_web/{name}")
        assert script.status_code == 200, name
        assert "javascript" in script.headers["content-type"]
        assert script.headers["cache-control"] == "no-cache"
        imported = re.findall(r'from "(\.[\w./]+)"', script.text)
        wanted |= {normpath(f"{dirname(name)}/{path}".lstrip("/")) for path in imported} - seen
    static = HERE / "static"
    assert seen == {str(path.relative_to(static)) for path in static.rglob("*.js")}


def test_a_page_of_its_own_calls_the_given_server() -> None:
    with TestClient(mounted(FastAPI(), 'http://speech.example:8000/a"b')) as client:
        config = config_of(client.get("/").text)
    (page,) = config["components"]
    assert 'data-api-base="http://speech.example:8000/a&quot;b/"' in page["props"]["value"]
