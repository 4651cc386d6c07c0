"""Puts the adapters that speak HTTP and WebSocket on an app."""

from __future__ import annotations

from fastapi import FastAPI

from cantata.api.adapters import deepgram, elevenlabs, elevenlabs_socket
from cantata.api.adapters.deepgram_messages import DeepgramErrorBody
from cantata.api.adapters.elevenlabs_messages import ElevenLabsErrorBody
from cantata.api.errors import shape_errors
from cantata.api.openapi import errors_as


def mount_adapters(app: FastAPI) -> None:
    """Add their routes; errors on their paths use their own format."""
    app.include_router(deepgram.router, responses=errors_as(DeepgramErrorBody))
    for routes in (elevenlabs, elevenlabs_socket):
        app.include_router(routes.router, responses=errors_as(ElevenLabsErrorBody))
    shape_errors(app, deepgram.PREFIX, deepgram.error_body)
    for prefix in elevenlabs.PREFIXES:
        shape_errors(app, prefix, elevenlabs.error_body)
