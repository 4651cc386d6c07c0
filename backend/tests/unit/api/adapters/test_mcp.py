"""/mcp, with the client of the package `mcp`, unmodified, in both ages of its protocol."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from batch_client import FILES
from fake_service import FakeService, eventually
from live_server import Server, running
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import AudioContent, CallToolResult, ImageContent, TextContent
from server_process import ServerProcess, server_process, until_metric
from starlette.responses import PlainTextResponse

from cantata.api.access.api_keys import ApiKeys
from cantata.api.adapters import mcp_calls, mcp_server
from cantata.api.settings import JobSettings, SecuritySettings, ServerSettings
from documented import HOWTOS, URL, read_block

MODES = ("auto", "legacy")
KEY, OTHER = "first-key-0123456789", "second-key-9876543210"
RECORDING = Path(__file__).parents[5] / "docs" / "voice" / "clara.mp3"
SPEECH, TRANSCRIBE, DRAW = "/v1/audio/speech", "/v1/audio/transcriptions", "/v1/images/generations"
ASK = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def assistant(
    server: Server | ServerProcess, mode: str = "auto", key: str | None = None
) -> AsyncIterator[Client]:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, verify=False) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@asynccontextmanager
async def keeping(tmp_path: Path, **security: Any) -> AsyncIterator[Server]:
    """A server that keeps files, with access as given."""
    settings = ServerSettings(
        jobs=JobSettings(folder=tmp_path), security=SecuritySettings(**security)
    )
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


def words(result: CallToolResult) -> str:
    """The text of a result."""
    return "\n".join(one.text for one in result.content if isinstance(one, TextContent))


async def refusal(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return words(result)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_it_offers_what_the_served_models_can_do(server: Server, mode: str) -> None:
    async with assistant(server, mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"speak", "list_voices", "transcribe", "draw"}
        assert server.service.default_model in (tools["speak"].description or "")
        taken = tools["speak"].input_schema["properties"]
        assert {"text", "voice", "model", "speed", "instructions", "seed", "format"} == set(taken)


async def test_what_is_spoken_is_what_http_speaks(
    server: Server, mode: str, http: httpx.AsyncClient
) -> None:
    async with assistant(server, mode) as client:
        asked = {"voice": "ben", "speed": 1.5}
        result = await client.call_tool("speak", {"text": "hello there", "format": "wav", **asked})
        sound = result.content[0]
        assert isinstance(sound, AudioContent)
        assert sound.mime_type == "audio/wav"
        plain = await http.post(
            SPEECH, json={"input": "hello there", "response_format": "wav", **asked}
        )
        assert base64.b64decode(sound.data) == plain.content
        assert server.solo.counts.requests[0].voice == "ben"


async def test_long_sound_arrives_whole(server: Server, mode: str, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.chunk_samples = 24_000  # a second
    asked = {"text": "x" * 60, "format": "wav"}
    async with assistant(server, mode) as client:
        sound = (await client.call_tool("speak", asked)).content[0]
    assert isinstance(sound, AudioContent)
    plain = await http.post(SPEECH, json={"input": asked["text"], "response_format": "wav"})
    assert base64.b64decode(sound.data) == plain.content
    assert len(plain.content) > 2 << 20


async def test_it_says_what_a_model_ignores_and_where_to_hear_it(server: Server) -> None:
    async with assistant(server) as client:
        result = await client.call_tool(
            "speak", {"text": "hi", "instructions": "softly", "model": "duo"}
        )
        assert words(result) == "This model ignores: instructions.", "no page is served"
        server.app.router.add_route("/", lambda request: PlainTextResponse("the page"))
        result = await client.call_tool("speak", {"text": "Say: a & b", "voice": "ben"})
        assert words(result).endswith(f"{server.url}/?text=Say%3A+a+%26+b&voice=ben")
        result = await client.call_tool("speak", {"text": "&" * 199, "instructions": "&" * 500})
        assert not words(result), "programs cut addresses of that length"


async def test_tools_of_a_server_that_loads_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = FakeService()
    service.may_start.clear()
    async with running(service) as server, assistant(server, "legacy") as client:
        with monkeypatch.context() as patched:
            patched.setattr(mcp_server, "LOADING_S", 0.01)
            with pytest.raises(MCPError, match="not ready"):
                await client.list_tools()
        listing = asyncio.create_task(client.list_tools())
        with pytest.warns(MCPDeprecationWarning):
            await client.send_ping()  # sent after it, answered before it
        service.may_start.set()
        assert (await listing).tools


async def test_voices(server: Server, mode: str, http: httpx.AsyncClient) -> None:
    async with assistant(server, mode) as client:
        said = words(await client.call_tool("list_voices", {"model": "solo"}))
        listed = (await http.get("/v1/audio/voices?model=solo")).json()["voices"]
        assert [one["id"] for one in listed] == ["clara", "ben"]
        assert all(f'"id": "{one["id"]}"' in said and one["model"] in said for one in listed)


async def test_what_is_heard_is_what_http_hears(
    server: Server, mode: str, http: httpx.AsyncClient
) -> None:
    async with assistant(server, mode) as client:
        data = RECORDING.read_bytes()
        plain = await http.post(
            TRANSCRIBE, files={"file": data}, data={"response_format": "text", "language": "en"}
        )
        sent = {"audio": base64.b64encode(data).decode(), "language": "en"}
        said = words(await client.call_tool("transcribe", sent))
        assert said
        assert said == plain.text.strip()


async def test_a_picture(server: Server, mode: str, http: httpx.AsyncClient) -> None:
    async with assistant(server, mode) as client:
        result = await client.call_tool("draw", {"prompt": "a red house", "seed": 7})
        plain = await http.post(DRAW, json={"prompt": "a red house", "seed": 7})
        picture = result.content[0]
        assert isinstance(picture, ImageContent)
        assert picture.data == plain.json()["data"][0]["b64_json"]
        assert "seed 7" in words(result)


async def test_refusals_are_the_routes_own(
    server: Server, mode: str, http: httpx.AsyncClient
) -> None:
    async with assistant(server, mode) as client:
        plain = await http.post(SPEECH, json={"input": "hi", "voice": "nobody"})
        message = plain.json()["error"]["message"]
        assert await refusal(client, "speak", text="hi", voice="nobody") == message
        assert "clara" in message
        plain = await http.post(TRANSCRIBE, files={"file": b"no sound"})
        sent = base64.b64encode(b"no sound").decode()
        assert (await refusal(client, "transcribe", audio=sent)).split(":")[-1] == plain.json()[
            "error"
        ]["message"].split(":")[-1]


@pytest.mark.parametrize(
    ("tool", "sent", "said"),
    [
        ("speak", {}, "text is required"),
        ("speak", {"text": "hi", "speed": 9}, "speed"),
        ("speak", {"text": "hi", "colour": "red"}, "colour"),
        ("speak", {"text": "x" * 5000}, "text"),
        ("transcribe", {}, "either audio or file"),
        ("transcribe", {"audio": "aGk=", "file": "f"}, "either audio or file"),
        ("draw", {"prompt": "x", "size": "3x3"}, "size"),
    ],
)
async def test_bad_arguments_are_named(
    server: Server, tool: str, sent: dict[str, Any], said: str
) -> None:
    async with assistant(server) as client:
        assert said in await refusal(client, tool, **sent)
        with pytest.raises(MCPError, match="no tool 'sing'; served: speak"):
            await client.call_tool("sing", {})


async def test_only_files_that_are_kept_here_are_heard(tmp_path: Path) -> None:
    async with (
        keeping(tmp_path, api_keys=ApiKeys([KEY, OTHER])) as server,
        httpx.AsyncClient(base_url=server.url, headers={"x-api-key": KEY}) as http,
        assistant(server, key=KEY) as client,
        assistant(server, key=OTHER) as other,
    ):
        sent = {"file": ("me.mp3", RECORDING.read_bytes())}
        kept = (await http.post(FILES, data={"purpose": "user_data"}, files=sent)).json()["id"]
        heard = words(
            await client.call_tool(
                "transcribe", {"audio": base64.b64encode(sent["file"][1]).decode()}
            )
        )
        for named in (kept, f"{FILES}/{kept}/content", f"{server.url}{FILES}/{kept}"):
            assert words(await client.call_tool("transcribe", {"file": named})) == heard
            assert "no file" in await refusal(other, "transcribe", file=named)
        for named in ("http://elsewhere/v1/files/x", "/etc/passwd", "file:///etc/passwd"):
            assert "fetches nothing" in await refusal(client, "transcribe", file=named)


async def test_without_a_key_nothing_is_answered(tmp_path: Path) -> None:
    async with (
        keeping(tmp_path, api_keys=ApiKeys([KEY])) as server,
        httpx.AsyncClient(base_url=server.url) as http,
    ):
        for path in ("/mcp", "/mcp/", "//mcp"):
            for method in ("GET", "POST", "DELETE"):
                url = server.url + path
                answer = await http.request(method, url, headers=ACCEPT, json=ASK)
                assert answer.status_code == 401
        with pytest.raises(BaseExceptionGroup) as refused:
            async with assistant(server):
                pass
        assert refused.group_contains(MCPError)
        async with assistant(server, key=KEY) as client:
            assert (await client.list_tools()).tools


async def test_the_settings_of_the_document_reach_the_server(tmp_path: Path) -> None:
    cursor = json.loads(read_block(HOWTOS / "mcp.md", "cursor.json"))["mcpServers"]["speech"]
    desktop = json.loads(read_block(HOWTOS / "mcp.md", "desktop.json"))["mcpServers"]["speech"]
    assert cursor["url"] == desktop["args"][2] == f"{URL}/mcp"
    # What mcp-remote makes of its arguments: a header's name, a colon, a value with variables.
    name, _, value = desktop["args"][4].partition(":")
    assert {name: value.replace("${KEY}", desktop["env"]["KEY"])} == cursor["headers"]
    headers = {name: value.replace("YOUR-KEY", KEY) for name, value in cursor["headers"].items()}
    async with (
        keeping(tmp_path, api_keys=ApiKeys([KEY])) as server,
        httpx.AsyncClient(headers={**ACCEPT, **headers}) as http,
    ):
        begun = await http.post(cursor["url"].replace(URL, server.url), json=ASK)
        assert begun.status_code == 200


async def test_a_session_is_of_the_key_that_began_it(tmp_path: Path) -> None:
    async with (
        keeping(tmp_path, api_keys=ApiKeys([KEY, OTHER])) as server,
        httpx.AsyncClient(base_url=server.url, headers=ACCEPT) as http,
    ):
        begun = await http.post("/mcp", json=ASK, headers={"x-api-key": KEY})
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        for key, status in ((OTHER, 404), (KEY, 200)):
            sent = {"x-api-key": key, **session}
            assert (await http.post("/mcp", json=ping, headers=sent)).status_code == status


async def test_pages_of_other_sites_and_foreign_names_are_refused(
    http: httpx.AsyncClient,
) -> None:
    foreign = ({"origin": "http://evil.example"}, {"host": "evil.example"})
    for headers in foreign:
        answer = await http.post("/mcp", json=ASK, headers={**ACCEPT, **headers})
        assert answer.status_code == 403
    # There are no messages of the server's own to listen to.
    assert (await http.get("/mcp", headers=ACCEPT)).status_code == 405


async def test_a_cancelled_call_frees_its_place(server: Server, mode: str) -> None:
    counts, behaviour = server.solo.counts, server.solo.behaviour
    behaviour.may_sound, behaviour.abort_s = asyncio.Event(), 0.05
    async with assistant(server, mode) as client:
        calling = asyncio.create_task(client.call_tool("speak", {"text": "hello"}))
        await eventually(lambda: counts.open == 1)
        calling.cancel()
        await asyncio.wait([calling])
        await eventually(lambda: counts.open == 0)
        assert (counts.aborted, counts.abort_interrupted) == (1, 0)
        behaviour.may_sound = None
        assert not (await client.call_tool("speak", {"text": "hello"})).is_error


async def test_a_client_that_leaves_frees_its_place(server: Server) -> None:
    counts, behaviour = server.solo.counts, server.solo.behaviour
    behaviour.may_sound, behaviour.abort_s = asyncio.Event(), 0.05
    async with httpx.AsyncClient(base_url=server.url, headers=ACCEPT) as http:
        begun = await http.post("/mcp", json=ASK)
        headers = {"mcp-session-id": begun.headers["mcp-session-id"]}
        call = {"name": "speak", "arguments": {"text": "hello"}}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        calling = asyncio.create_task(http.post("/mcp", json=body, headers=headers))
        await eventually(lambda: counts.open == 1)
        calling.cancel()
        await eventually(lambda: counts.open == 0)
    assert (counts.aborted, counts.abort_interrupted) == (1, 0)


async def test_limits_count_calls_and_not_messages(tmp_path: Path) -> None:
    async with keeping(tmp_path, api_keys=ApiKeys([KEY]), max_concurrent_per_key=1) as server:
        counts, behaviour = server.solo.counts, server.solo.behaviour
        behaviour.may_sound = asyncio.Event()
        async with assistant(server, "legacy", KEY) as client:
            calling = asyncio.create_task(client.call_tool("speak", {"text": "hello"}))
            await eventually(lambda: counts.open == 1)
            assert "1 requests open" in await refusal(client, "speak", text="me too")
            calling.cancel()
            await eventually(lambda: counts.open == 0)
            behaviour.may_sound = None
            assert not (await client.call_tool("speak", {"text": "me too"})).is_error


async def test_a_full_server_says_when_to_come_back(server: Server) -> None:
    server.solo.behaviour.capacity = 0
    async with assistant(server) as client:
        said = await refusal(client, "speak", text="hello")
    assert said == "all slots are taken; try again in 3 s"


async def test_answers_are_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_calls, "MAX_ANSWER_BYTES", 10_000)
    async with assistant(server) as client:
        assert "less text" in await refusal(client, "speak", text="x" * 100, format="wav")
    await eventually(lambda: server.solo.counts.open == 0)


async def test_calls_end_before_the_server_stops() -> None:
    async with server_process() as server, httpx.AsyncClient(base_url=server.url) as http:
        async with assistant(server, "legacy") as client:
            await client.list_tools()  # else the client does so after the call
            calling = asyncio.create_task(client.call_tool("speak", {"text": "hello"}))
            await until_metric(http, 'cantata_requests_running{model="solo"} 1.0')
            server.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                while (await http.get("/health")).json()["status"] != "stopping":  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            server.let_sound()
            assert not (await calling).is_error
        status, log = await server.ended()
    assert (status, b"Traceback" in log) == (-signal.SIGTERM, False)


async def test_without_the_package_it_says_what_to_install(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cantata.api.adapters.mcp_server", None)
    answer = await http.post("/mcp", json=ASK, headers=ACCEPT)
    assert answer.status_code == 501
    assert "pip install 'cantata[mcp]'" in answer.json()["error"]["message"]


async def test_what_keeps_it_from_starting_fails_every_request(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve_nothing(max_body_bytes: int) -> None:
        raise RuntimeError(f"of {max_body_bytes} bytes none")

    monkeypatch.setattr("cantata.api.adapters.mcp_server.serving", serve_nothing)
    for _ in range(2):
        async with asyncio.timeout(10):
            answer = await http.post("/mcp", json=ASK, headers=ACCEPT)
        assert answer.status_code == 500


def test_a_server_starts_without_the_package() -> None:
    code = (
        "import sys, cantata.api.app\n"
        "assert 'cantata.api.adapters.mcp' in sys.modules\n"
        "assert not {'mcp', 'mcp_types', 'sse_starlette'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert importlib.util.find_spec("mcp")
