"""docs/realtime.md: every event, setting and limit is in it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from cantata.api.realtime import server_events
from cantata.api.realtime.client_events import CLIENT_TYPES
from cantata.api.realtime.session_settings import (
    AudioInput,
    AudioOutputSettings,
    ServerVad,
    SessionSettings,
)
from cantata.speech_input.settings import RealtimeSettings

DOCUMENT = (Path(__file__).parents[5] / "docs" / "realtime.md").read_text(encoding="utf-8")


def server_types() -> set[str]:
    kinds = [
        kind
        for kind in vars(server_events).values()
        if isinstance(kind, type) and issubclass(kind, server_events.ServerEvent)
    ]
    return {
        name
        for kind in kinds
        if "type" in kind.model_fields
        for name in get_args(kind.model_fields["type"].annotation)
    }


@pytest.mark.parametrize("event", [*CLIENT_TYPES, *sorted(server_types())])
def test_every_event_is_named(event: str) -> None:
    # Of several in a row, those after the first are named by their ends.
    assert f"`{event}`" in DOCUMENT or f"`.{event.rsplit('.', 1)[1]}`" in DOCUMENT


def test_every_setting_is_named() -> None:
    names = {f"`{name}`" for name in (*ServerVad.model_fields, *SessionSettings.model_fields)}
    names |= {f"`audio.input.{name}`" for name in AudioInput.model_fields}
    names |= {f"`audio.output.{name}`" for name in AudioOutputSettings.model_fields}
    names -= {"`type`", "`audio`", "`tool_choice`"}
    assert {name for name in names if name not in DOCUMENT} == set()


def test_every_limit_is_named() -> None:
    limits = RealtimeSettings()
    for said in (
        f"up to {limits.max_append_bytes >> 20} MiB",
        f"| a message | {limits.max_message_bytes >> 20} MiB",
        f"{limits.max_sound_s:g} s | error; a turn is ended",
        f"| {limits.max_items}, of at most {limits.max_item_characters:,} characters",
        f"{limits.idle_timeout_s:g} s | error `idle_timeout`",
        f"{limits.max_session_s:g} s | error `session_expired`",
        f"{limits.answer_timeout_s:g} s | the response fails",
        f"at most {limits.max_ahead_s:g} s ahead",
        f"within {limits.resuming.kept_s:g} s and misses nothing",
        f"the last {limits.resuming.max_bytes >> 20} MiB are kept",
        f"has {limits.resuming.max_sessions} such sessions",
        f"takes {limits.calls.max_calls} calls",
        f"{limits.calls.connect_s:g} s to connect",
    ):
        assert said in DOCUMENT, said
