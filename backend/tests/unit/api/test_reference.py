"""GET /docs: the routes as a page, with the network off."""

from __future__ import annotations

import re

import httpx
import pytest
from fake_service import FakeService

from cantata.api.app import create_app

pytest.importorskip("fastapi_offline", reason="it comes with the extra web")


@pytest.fixture
def asgi() -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=create_app(FakeService()))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def test_the_page_loads_only_what_this_server_has(asgi: httpx.AsyncClient) -> None:
    page = (await asgi.get("/docs")).text
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(named) == 3
    (document,) = re.findall(r"url: '([^']+)'", page)
    for one in (*named, document):
        assert re.match(r"(?!\w+:|/)\w", one), "relative, also right behind a proxy's prefix"
    loaded = [await asgi.get(f"/{one}") for one in named if one != "favicon.ico"]
    assert [one.status_code for one in loaded] == [200, 200]
    assert {one.headers["content-type"].split(";")[0] for one in loaded} == {
        "text/css",
        "text/javascript",
    }
    assert (await asgi.get(f"/{document}")).json()["info"]["title"] == "Cantata"


@pytest.mark.parametrize("path", ["/redoc", "/docs/assets/none.js", "/docs/assets/../core.py"])
async def test_nothing_else_is_there(asgi: httpx.AsyncClient, path: str) -> None:
    answer = await asgi.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
