"""The page as it leaves the server: what it contains, and what it leaves to the API."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cantata_web.app import HERE, _mount, mount
from fastapi import FastAPI
from fastapi.testclient import TestClient


def mounted(app: FastAPI, api_base: str = "") -> FastAPI:
    """`app` with the page on it, mounted inside a loop: without one Gradio makes its own and leaves
    it open, which would be a warning here."""

    async def mount_page() -> None:
        _mount(app, api_base) if api_base else mount(app)

    asyncio.run(mount_page())
    return app


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI()

    @app.get("/v1/models")
    def models() -> dict[str, str]:
        return {"object": "list"}

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


def test_the_page_reports_to_nobody(client: TestClient) -> None:
    config = client.get("/config").json()
    assert config["analytics_enabled"] is False
    assert "googleapis" not in client.get("/").text
    assert "googleapis" not in client.get("/theme.css").text


def test_nobody_may_leave_files(client: TestClient) -> None:
    upload = client.post("/gradio_api/upload", files={"files": ("a.bin", b"0123456789")})
    assert upload.status_code == 413


def test_every_imported_script_is_served_and_revalidated(client: TestClient) -> None:
    seen, wanted = set(), {"page.js", "worklet.js"}
    while wanted:
        name = wanted.pop()
        seen.add(name)
        script = client.get(f"/cantata_web/{name}")
        assert script.status_code == 200, name
        assert "javascript" in script.headers["content-type"]
        assert script.headers["cache-control"] == "no-cache"
        wanted |= set(re.findall(r'from "\./([\w.]+)"', script.text)) - seen
    assert seen == {path.name for path in (HERE / "static").iterdir()}


def test_a_page_of_its_own_calls_the_given_server() -> None:
    with TestClient(mounted(FastAPI(), 'http://speech.example:8000/a"b')) as client:
        config = client.get("/config").json()
    assert (
        'data-api-base="http://speech.example:8000/a&quot;b/"'
        in config["components"][0]["props"]["value"]
    )
