"""What serves MCP, by the package `mcp`; imported at the first request for it.

The package keeps sessions, which clients of its older versions open, and answers both those and the
newer ones, which have none. A call is ended when its client cancels it or leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from cantata import __version__
from cantata.api.access.security import get_key_label
from cantata.api.adapters.mcp import watch_disconnect
from cantata.api.adapters.mcp_calls import MAX_ANSWER_BYTES, AnswerTooLarge, CallRefused
from cantata.api.adapters.mcp_tools import Content, McpTool, list_tools
from cantata.api.context import ApiContext
from cantata.api.errors import describe, explain_validation
from cantata.api.http.streamed_response import run_until_disconnect
from cantata.contract.data.errors import CantataError

MAX_SESSIONS = 1000
IDLE_S = 4 * 3600.0
"""Sessions are forgotten after this long without a request. Many clients do not open another one by
themselves, so this covers an afternoon without a question."""
LOADING_S = 30.0
"""How long the list of tools waits for the models."""

_INSTRUCTIONS = (
    "Speech, transcripts and pictures, made on this machine. Ask list_voices before you choose a "
    "voice. Texts of books are better sent to POST /v1/jobs."
)

RequestContext = ServerRequestContext[Any, Request]


@asynccontextmanager
async def serving(max_body_bytes: int) -> AsyncIterator[ASGIApp]:
    """Serve MCP while the block runs; leaving it ends all sessions. `max_body_bytes`: of the
    longest message."""
    server: Server[Any] = Server(
        "cantata",
        version=__version__,
        title="Cantata",
        instructions=_INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    manager = StreamableHTTPSessionManager(
        server,
        # Origins and names were checked, by this server's settings.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        # WHY: the package's client takes up to 1 MiB by its streams, a minute and a half of MP3.
        json_response=True,
        session_idle_timeout=IDLE_S,
        max_sessions=MAX_SESSIONS,
        max_request_body_size=max_body_bytes,
    )

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if label := get_key_label(scope):
            # A session is of the key that began it.
            token = AccessToken(token=label, client_id=label, scopes=[])
            scope["user"] = AuthenticatedUser(token)
        await manager.handle_request(scope, receive, send)

    async with manager.run():
        yield serve


async def _list_tools(
    ctx: RequestContext, params: PaginatedRequestParams | None
) -> ListToolsResult:
    # Assistants ask once, when they start, and that may be together with the server.
    with suppress(TimeoutError):
        async with asyncio.timeout(LOADING_S):
            await _get_context(ctx).lifecycle.settled.wait()
    return ListToolsResult(tools=[_describe(tool) for tool in _get_tools(ctx)])


def _describe(tool: McpTool) -> Tool:
    schema = tool.arguments.model_json_schema()
    schema.pop("description", None)  # the class's own
    return Tool(name=tool.name, title=tool.title, description=tool.description, input_schema=schema)


def _get_context(ctx: RequestContext) -> ApiContext:
    assert ctx.request is not None  # by HTTP there is always one
    context: ApiContext = ctx.request.app.state.context
    return context


def _get_tools(ctx: RequestContext) -> list[McpTool]:
    """Raises MCPError if no model is served yet."""
    try:
        return list_tools(_get_context(ctx))
    except CantataError as error:
        raise MCPError(INTERNAL_ERROR, error.message) from None


async def _call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    tools = {tool.name: tool for tool in _get_tools(ctx)}
    tool = tools.get(params.name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, f"no tool {params.name!r}; served: {', '.join(tools)}")
    assert ctx.request is not None
    request, sent = ctx.request, params.arguments or {}
    result = _refuse("the client left")

    async def call() -> None:
        nonlocal result
        result = await _answer(tool, request, sent)

    await run_until_disconnect(watch_disconnect(request.scope), call(), f"mcp:{tool.name}")
    return result


async def _answer(tool: McpTool, request: Request, sent: dict[str, Any]) -> CallToolResult:
    """What a tool answers; its errors are answers, too, which a model reads and may act on."""
    try:
        content: Content = await tool.call(request, tool.arguments.model_validate(sent))
    except ValidationError as error:
        return _refuse(explain_validation(error.errors(), {"body": sent}).message)
    except CallRefused as error:
        return _refuse(str(error))
    except AnswerTooLarge:
        max_mib = MAX_ANSWER_BYTES >> 20
        return _refuse(f"the answer is longer than {max_mib} MiB; ask for mp3, or send less text")
    except CantataError as error:
        return _refuse(describe(error).detail.message)
    return CallToolResult(content=content)


def _refuse(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
