"""The Gradio app beside an API: where it is, what it leaves shut, and when it is imported.

Imported where it is used: Gradio takes four CPU seconds, of every worker that collects the tests.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException

from cantata_web import gradio_app, gradio_blocks
from cantata_web.app import mount
from cantata_web.gradio_offer import Offer

SPEAKING = Offer({"solo": ()})
SOLO = {"id": "solo", "default_voice": "clara", "capabilities": {"references": False}}
SKETCH = {
    "id": "sketch",
    "output_modalities": ["image"],
    "transcription": None,
    "images": {"default_size": "128x128"},
}
TALKER = {"id": "talker", "output_modalities": ["text"], "transcription": None, "images": None}


def _answer(content: Mapping[str, Any], request: Request) -> Response:
    return JSONResponse(content)


def _build_api(speaking: list[Any], others: list[Any]) -> FastAPI:
    """An API that lists models, and refuses every text and picture."""
    api = FastAPI()
    answers: dict[str, Any] = {
        "/v1/audio/models": {"models": speaking},
        "/v1/audio/voices": {"voices": []},
        "/v1/models": {"data": others},
    }
    for path, answer in answers.items():
        api.add_route(path, partial(_answer, answer))

    @api.post("/v1/audio/speech")
    def refuse(body: dict[str, Any]) -> Response:
        if "input" in body:
            return _refuse("speed", f"speed: Input should be less (got {body['speed']!r})")
        return _refuse("input", "input is required")

    @api.post("/v1/images/generations")
    def refuse_seed(body: dict[str, Any]) -> Response:
        return _refuse("seed", f"seed: Input should be more (got {body['seed']!r})")

    @api.post("/v1/chat/completions")
    def repeat(body: dict[str, Any]) -> Response:
        (message,) = body["messages"]
        return _refuse(None, f"asked: {message['content'][0]['text']}")

    return api


def _refuse(param: str | None, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "param": param}}, 400)


@contextmanager
def _serve_beside(api: FastAPI) -> Iterator[TestClient]:
    """The Gradio app whose speech server is `api`."""

    def open_client(address: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url=address)

    app = FastAPI()
    mount(app)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gradio_app, "_open_client", open_client)
        with TestClient(app) as client:
            yield client


def _list_endpoints(client: TestClient) -> list[str]:
    """As programs see them, whose libraries look into both."""
    named = list(client.get("/gradio/gradio_api/info").json()["named_endpoints"])
    calls = client.get("/gradio/config").json()["dependencies"]
    public = [f"/{one['api_name']}" for one in calls if one["api_visibility"] == "public"]
    assert named == public
    return named


def _call(client: TestClient, endpoint: str, *fields: Any) -> str:
    """What an endpoint says to fields that it refuses."""
    calls = client.get("/gradio/config").json()["dependencies"]
    (number,) = (one["id"] for one in calls if one["api_name"] == endpoint)
    body = {"fn_index": number, "data": fields, "session_hash": "test"}
    answer = client.post("/gradio/gradio_api/run/predict", json=body)
    assert answer.status_code == 500
    return str(answer.json()["error"])


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


@pytest.fixture(scope="module")
def refusing() -> Iterator[TestClient]:
    with _serve_beside(_build_api([SOLO], [SKETCH, TALKER])) as client:
        yield client


def test_it_is_served_below_the_page(client: TestClient) -> None:
    redirected = client.get("/gradio", follow_redirects=False)
    assert redirected.headers["location"] == "gradio/", "also right behind a proxy's prefix"
    page = client.get("/gradio")
    assert page.url.path == "/gradio/"
    assert '"component_class_name":"StreamingSpeech"' in page.text
    endpoints = client.get("/gradio/gradio_api/info").json()["named_endpoints"]
    assert list(endpoints) == ["/speak", "/clone", "/chat", "/draw", "/transcribe"]


def test_tabs_have_nothing_between_them(client: TestClient) -> None:
    """Gradio would number the tabs by it: one that is opened takes the place of the next."""
    config = client.get("/gradio/config").json()
    types = {one["id"]: one["type"] for one in config["components"]}
    (bar,) = (one for one in config["layout"]["children"] if types[one["id"]] == "tabs")
    assert [types[one["id"]] for one in bar["children"]] == ["tabitem"] * 5


def test_programs_are_offered_what_is_served_at_the_time() -> None:
    others: list[Any] = [SKETCH]
    with _serve_beside(_build_api([SOLO], others)) as client:
        assert _list_endpoints(client) == ["/speak", "/draw"]
        others[:] = [TALKER]
        assert _list_endpoints(client) == ["/speak", "/chat"]
        page = client.get("/gradio/")
        assert '"/chat":' in page.text
        assert '"/draw":' not in page.text


def test_its_queue_looks_for_calls_often_only_while_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    intervals: list[float] = []
    set_polling = gradio_blocks.set_polling

    def note(app: Any, interval_s: float) -> None:
        set_polling(app, interval_s)
        intervals.append(app.get_blocks()._queue.sleep_when_free)

    monkeypatch.setattr(gradio_blocks, "set_polling", note)
    monkeypatch.setattr(gradio_app, "_IDLE_AFTER_S", 0.2)
    with _serve_beside(_build_api([SOLO], [])) as client:
        assert client.get("/gradio/config").is_success
        assert intervals[0] == 0.05
        deadline = time.monotonic() + 20
        while intervals[-1] != 0.5:
            assert time.monotonic() < deadline, intervals
            time.sleep(0.05)
        client.get("/gradio/config")
        assert 0.05 in intervals[2:]


def test_no_menu_tells_programs_that_other_values_are_wrong() -> None:
    """It may be empty, takes aliases, and knows only what was loaded when the app was built."""
    with _serve_beside(_build_api([SOLO], [])) as client:
        speak = client.get("/gradio/gradio_api/info").json()["named_endpoints"]["/speak"]
    told = {one["parameter_name"]: one["python_type"] for one in speak["parameters"]}
    assert told["model"] == {"type": "str", "description": "such as solo"}
    assert told["voice"] == {"type": "str", "description": ""}


HELLO = {"text": "hello", "files": []}
NO_FILE = "A recording is a file: gradio_client.handle_file makes it of a path or a URL."
NOT_UPLOADED: dict[str, Any] = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
SENT_FILE = {"role": "user", "content": [{"type": "file", "file": NOT_UPLOADED}]}


@pytest.mark.parametrize(
    ("endpoint", "fields", "told"),
    [
        ("speak", ("", "", 1, ""), "text is required"),
        ("speak", ("hi", "", 99, ""), "speed: Input should be less (got 99)"),
        ("speak", ("hi", "", "fast", ""), "speed: Input should be less (got 'fast')"),
        ("speak", ("hi",), "needed: 4, got: 1"),
        ("draw", ("red apple", "", -5, ""), "seed: Input should be more (got -5)"),
        ("transcribe", ("talk.mp3", "srt", ""), NO_FILE),
        ("transcribe", (NOT_UPLOADED, "srt", ""), "A file was not uploaded"),
        ("clone", (NOT_UPLOADED, "", "hi", "", ""), "A file was not uploaded"),
        ("chat", ({"text": "", "files": [NOT_UPLOADED]}, [], "", False), "A file was not uploaded"),
        ("option_clicked", ([SENT_FILE], None), "A file was not uploaded"),
        ("clone", (5, "", "hi", "", ""), NO_FILE),
        ("chat", ("hello", [], "", False), "asked: hello"),
        ("chat", (HELLO, [], "", False), "asked: hello"),
        ("chat", (None, [], "", False), "Write a message, or add a file."),
        ("chat", (5, [], "", False), "A message is a text, or {'text': ..., 'files': [...]}"),
    ],
)
def test_a_mistake_is_told_in_plain_words_and_not_logged(
    refusing: TestClient,
    endpoint: str,
    fields: tuple[Any, ...],
    told: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert told in _call(refusing, endpoint, *fields)
    assert "Traceback" not in "".join(capfd.readouterr())


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


def test_a_file_is_taken_once_it_was_uploaded(
    refusing: TestClient, capfd: pytest.CaptureFixture[str]
) -> None:
    sent = {"files": ("talk.wav", b"RIFF")}
    (path,) = refusing.post("/gradio/gradio_api/upload", files=sent).json()
    uploaded, gone = ({**NOT_UPLOADED, "path": one} for one in (path, f"{path}.deleted"))
    assert _call(refusing, "transcribe", uploaded, "srt", "") == "The server answered 404."
    assert "A file was not uploaded" in _call(refusing, "transcribe", gone, "srt", "")
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(("built_with", "moves"), [(Offer(), True), (SPEAKING, False)])
async def test_a_model_that_was_loaded_meanwhile_leaves_the_open_tab_open(
    tmp_path: Path, built_with: Offer, moves: bool
) -> None:
    api = _build_api([SOLO], [SKETCH])

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
