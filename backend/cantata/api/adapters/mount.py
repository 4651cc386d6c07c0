"""Puts the adapters that speak HTTP and WebSocket on an app."""

from __future__ import annotations

from fastapi import FastAPI

from cantata.api.adapters import (
    azure,
    captioned_speech,
    deepgram,
    deepgram_listen,
    elevenlabs,
    elevenlabs_dictionaries,
    elevenlabs_socket,
    phonemes,
)
from cantata.api.errors import shape_errors
from cantata.api.routing import add_routes


def mount_adapters(app: FastAPI) -> None:
    """Add their routes; errors on their paths use their own format."""
    for routes in (
        azure,
        deepgram,
        deepgram_listen,
        elevenlabs,
        elevenlabs_dictionaries,
        elevenlabs_socket,
        captioned_speech,
        phonemes,
    ):
        add_routes(app, routes.router)
    for routes in (deepgram, deepgram_listen):
        shape_errors(app, routes.PREFIX, deepgram.error_body)
    for prefix in elevenlabs.PREFIXES:
        shape_errors(app, prefix, elevenlabs.error_body)
