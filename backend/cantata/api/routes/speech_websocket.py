"""WebSocket /v1/audio/speech/stream: text in while it is written, PCM out while it is made."""

from __future__ import annotations

from fastapi import APIRouter, WebSocket

from cantata.api.context import Context
from cantata.api.sessions.native import NativeConnection

router = APIRouter(prefix="/v1/audio")


@router.websocket("/speech/stream")
async def speech_stream(socket: WebSocket, context: Context) -> None:
    """Serve one session; see docs/protocol.md."""
    await socket.accept()
    await NativeConnection(socket, context).run()
