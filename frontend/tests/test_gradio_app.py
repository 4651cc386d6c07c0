"""The Gradio app beside an API: where it is, what it leaves shut, and when it is imported.

Imported where it is used: Gradio takes four CPU seconds, of every worker that collects the tests.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException

from cantata_web.app import mount
from cantata_web.gradio_offer import Offer

SPEAKING = Offer({"solo": ()})


def _answer(content: Mapping[str, Any], request: Request) -> Response:
    return JSONResponse(content)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder, app = tmp_path_factory.mktemp("temporary"), FastAPI()

    @app.exception_handler(HTTPException)
    def in_own_words(request: Request, error: HTTPException) -> Response:
        return PlainTextResponse(f"the API's own words: {error.status_code}", error.status_code)

    mount(app)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(folder))
        with TestClient(app) as client:
            yield client
            assert list(folder.glob("cantata-gradio-*"))
    assert not list(folder.glob("cantata-gradio-*")), "files stay after the server's end"


def test_it_is_served_below_the_page(client: TestClient) -> None:
    redirected = client.get("/gradio", follow_redirects=False)
    assert redirected.headers["location"] == "gradio/", "also right behind a proxy's prefix"
    page = client.get("/gradio")
    assert page.url.path == "/gradio/"
    assert '"component_class_name":"StreamingSpeech"' in page.text
    endpoints = client.get("/gradio/gradio_api/info").json()["named_endpoints"]
    assert list(endpoints) == ["/speak", "/clone", "/chat", "/draw", "/transcribe"]


def test_it_sends_no_telemetry_and_loads_nothing_from_elsewhere(client: TestClient) -> None:
    assert client.get("/gradio/config").json()["analytics_enabled"] is False
    assert "googleapis" not in client.get("/gradio/").text + client.get("/gradio/theme.css").text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/gradio/gradio_api/mcp/"),
        ("POST", "/gradio/gradio_api/run/speak"),
        ("GET", "/gradio/gradio_api/proxy=http://127.0.0.1/"),
        ("GET", "/gradio/monitoring"),
        ("GET", "/gradio/gradio_api/openapi.json"),
    ],
)
def test_what_it_does_not_need_is_shut(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.text) == (404, "the API's own words: 404")


@pytest.mark.parametrize("path", ["/etc/passwd", "/tmp", "pyproject.toml"])
def test_it_hands_out_no_file_that_it_did_not_make(client: TestClient, path: str) -> None:
    assert client.get(f"/gradio/gradio_api/file={path}").status_code == 403


def test_without_an_offer_it_shows_no_tab_and_says_so(client: TestClient) -> None:
    """The API of these tests has no routes."""
    parts = client.get("/gradio/config").json()["components"]
    tabs = [one["props"] for one in parts if one["type"] == "tabitem"]
    assert len(tabs) == 5
    assert not any(tab["visible"] for tab in tabs)
    texts = [one["props"] for one in parts if one["type"] == "markdown"]
    assert any(text["visible"] and "offers nothing yet" in text["value"] for text in texts)


@pytest.mark.parametrize(("built_with", "moves"), [(Offer(), True), (SPEAKING, False)])
async def test_a_model_that_was_loaded_meanwhile_leaves_the_open_tab_open(
    tmp_path: Path, built_with: Offer, moves: bool
) -> None:
    api = FastAPI()
    model = {"id": "solo", "default_voice": "clara", "capabilities": {"references": False}}
    painter = {"id": "sketch", "output_modalities": ["image"], "transcription": None}
    answers: dict[str, Any] = {
        "/v1/audio/models": {"models": [model]},
        "/v1/audio/voices": {"voices": []},
        "/v1/models": {"data": [{**painter, "images": {"default_size": "128x128"}}]},
    }
    for path, answer in answers.items():
        api.add_route(path, partial(_answer, answer))

    def open_client() -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://test")

    import gradio as gr

    from cantata_web.gradio_blocks import build_blocks
    from cantata_web.gradio_calls import ServerClient

    blocks = build_blocks("http://test", ServerClient(open_client, tmp_path), built_with)
    (refresh,) = (one.fn for one in blocks.fns.values() if one.name == "refresh")
    assert refresh is not None
    _, tabs, *_ = await refresh(gr.Request(headers={}))
    assert isinstance(tabs, gr.Tabs) is moves
