"""Slashes and HEAD as clients send them, and Azure's paths."""

from __future__ import annotations

import httpx
import pytest
from starlette.routing import Route

from cantata.api.access.api_keys import ApiKeys
from cantata.api.http.request_line import normalize_path, to_openai_path
from cantata.api.settings import SecuritySettings, ServerSettings


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/v1//audio/speech", "/v1/audio/speech"),
        ("//v1/audio/speech/", "/v1/audio/speech"),
        ("/v1/audio///speech//", "/v1/audio/speech"),
        ("/health/", "/health"),
        ("/openai/v1/audio/speech", "/v1/audio/speech"),
        ("/openai//v1/models/", "/v1/models"),
        ("/openai/realtime", "/v1/realtime"),
        ("/openai/models/", "/v1/models"),
        ("/openai/deployments/tts/audio/speech", "/openai/deployments/tts/audio/speech"),
        ("//", "/"),
        ("/", "/"),
        ("/static//a/", "/static//a/"),
        ("/v10//a/", "/v10//a/"),
    ],
)
def test_paths_of_the_api_are_brought_into_one_form(path: str, normal: str) -> None:
    assert normalize_path(path) == normal


@pytest.mark.parametrize(
    "path",
    ["/v1//audio/speech", "//v1/audio/speech", "/v1/audio/speech/", "/openai/v1/audio/speech"],
)
async def test_doubled_and_trailing_slashes_reach_the_route(
    asgi: httpx.AsyncClient, path: str
) -> None:
    url = httpx.URL("http://localhost").copy_with(raw_path=path.encode())
    response = await asgi.post(url, json={"input": "Hi", "response_format": "pcm"})
    assert response.status_code == 200
    assert response.content


async def test_head_is_get_without_a_body_on_every_route(asgi: httpx.AsyncClient) -> None:
    routes = asgi._transport.app.routes  # type: ignore[attr-defined]
    paths = {
        route.path.replace("{", "").replace("}", "")
        for route in routes
        if isinstance(route, Route) and "GET" in (route.methods or ())
    }
    assert {"/health", "/metrics", "/v1/models", "/v1/audio/voices"} <= paths
    for path in sorted(paths):
        got, head = await asgi.get(path), await asgi.head(path)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers.get("content-type") == got.headers.get("content-type"), path


async def test_head_of_a_route_without_get_is_not_allowed(asgi: httpx.AsyncClient) -> None:
    assert (await asgi.head("/v1/audio/speech")).status_code == 405


class TestKeys:
    @pytest.fixture
    def settings(self) -> ServerSettings:
        return ServerSettings(
            security=SecuritySettings(api_keys=ApiKeys(["secret-key-1234567890"]))
        )

    @pytest.mark.parametrize(
        "path",
        ["/metrics/", "//metrics", "/v1//realtime", "/openai/v1/realtime", "/openai/realtime"],
    )
    async def test_no_form_of_a_path_goes_past_the_key(
        self, asgi: httpx.AsyncClient, path: str
    ) -> None:
        url = httpx.URL("http://localhost").copy_with(raw_path=path.encode())
        assert (await asgi.get(url)).status_code == 401
        assert (await asgi.head(url)).status_code == 401


@pytest.mark.parametrize("deployment", ["tts", "solo", "gpt-4o-mini-tts"])
async def test_azures_deployments_select_a_model(asgi: httpx.AsyncClient, deployment: str) -> None:
    response = await asgi.post(
        f"/openai/deployments/{deployment}/audio/speech?api-version=2025-04-01-preview",
        json={"input": "Hi", "voice": "alloy", "model": deployment},
    )
    assert response.status_code == 200
    assert response.headers["content-type"] == "audio/mpeg"


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/openai/deployments/tts/audio/speech", "/v1/audio/speech"),
        ("/v1/audio/speech", "/v1/audio/speech"),
        ("/openai/deployments/tts", "/openai/deployments/tts"),
    ],
)
def test_a_deployments_route_is_subject_to_the_limits_of_openais(path: str, route: str) -> None:
    assert to_openai_path(path) == route
