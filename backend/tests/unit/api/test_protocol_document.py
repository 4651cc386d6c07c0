"""docs/protocol.md: every example is valid, every message and body has one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from fake_service import FakeService
from pydantic import BaseModel

from cantata.api import messages, schemas
from cantata.api.app import create_app
from cantata.api.schemas import WireModel
from cantata.api.settings import ServerSettings

DOCUMENT = (Path(__file__).parents[4] / "docs" / "protocol.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```json (\w+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


def types() -> dict[str, type[BaseModel]]:
    return {
        name: value
        for module in (schemas, messages)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, WireModel)
    }


def members(union: object) -> set[str]:
    return {member.__name__ for member in get_args(get_args(union)[0])}


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_example_is_valid(name: str, example: str) -> None:
    model = types()[name]
    parsed = model.model_validate_json(example)
    given = json.loads(example)
    # Nothing in an example may be a key that the server would ignore.
    assert given.keys() <= model.model_fields.keys()
    dumped = json.loads(parsed.model_dump_json())
    assert {key: dumped[key] for key in given} == given


def test_every_message_and_body_has_an_example() -> None:
    shown = {name for name, _ in EXAMPLES}
    assert members(messages.ClientMessage) | members(messages.ServerMessage) <= shown
    bodies = {"SpeechBody", "SpeechAudioDelta", "SpeechAudioDone", "SpeechAudioError", "ErrorBody"}
    bodies |= {"ModelList", "AudioModelList", "VoiceList", "Health", "Readiness"}
    assert bodies <= shown


def test_messages_are_told_apart_by_their_type() -> None:
    adapters = {
        **dict.fromkeys(members(messages.ClientMessage), messages.CLIENT_MESSAGES),
        **dict.fromkeys(members(messages.ServerMessage), messages.SERVER_MESSAGES),
    }
    for name, example in EXAMPLES:
        if name in adapters:
            assert type(adapters[name].validate_json(example)).__name__ == name


def test_every_route_and_setting_is_told() -> None:
    app = create_app(FakeService(), ServerSettings())
    for path in app.openapi()["paths"]:
        assert path.replace("{name}", "{id}") in DOCUMENT
    defaults = ServerSettings()
    assert f"within {defaults.socket_config_timeout_s:g} s" in DOCUMENT
    assert f"{defaults.socket_idle_timeout_s:g} s without a message" in DOCUMENT
    assert f"At most {defaults.max_pending_utterances} utterances" in DOCUMENT
    assert f"over {defaults.max_message_bytes >> 10} KiB" in DOCUMENT
    assert f"over {defaults.max_body_bytes >> 20} MiB" in DOCUMENT
