"""API keys as other services' clients send them, and rejections in each service's format."""

from __future__ import annotations

import httpx
import pytest
from json_socket import json_socket
from live_server import Server
from websockets.exceptions import InvalidStatus

from cantata.api.access.api_keys import ApiKeys
from cantata.api.settings import SecuritySettings, ServerSettings

KEY = "a-key-of-some-length"
CASES = [
    ("/v1/speak", {"authorization": f"Token {KEY}"}, ("err_code", "INVALID_AUTH")),
    ("/v1/text-to-speech/clara", {"xi-api-key": KEY}, ("detail", None)),
]


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(security=SecuritySettings(api_keys=ApiKeys([KEY])))


@pytest.mark.parametrize(("path", "headers", "refusal"), CASES)
async def test_http(
    http: httpx.AsyncClient, path: str, headers: dict[str, str], refusal: tuple[str, str | None]
) -> None:
    body = {"text": "hello"}
    refused = await http.post(path, json=body)
    assert refused.status_code == 401
    field, value = refusal
    assert refused.json()[field] == value or value is None
    assert (await http.post(path, json=body, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/speak", {"authorization": f"Token {KEY}"}),
        (
            "/v1/listen?encoding=linear16&sample_rate=16000",
            {"authorization": f"Token {KEY}"},
        ),
        ("/v1/text-to-speech/clara/multi-stream-input", {"xi-api-key": KEY}),
    ],
)
async def test_websockets(server: Server, path: str, headers: dict[str, str]) -> None:
    url = server.url.replace("http", "ws") + path
    with pytest.raises(InvalidStatus) as refused:
        async with json_socket(url):
            pass
    assert refused.value.response.status_code == 401
    async with json_socket(url, additional_headers=headers):
        pass
