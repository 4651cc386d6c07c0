"""docs/migrate.md: each field of its tables is sent, and does what its row says."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile

from cantata_models.qwen3_tts.request_options import Qwen3TtsOptions

DOCUMENT = (Path(__file__).parents[4] / "docs" / "migrate.md").read_text()
ROW = re.compile(r"^\| `(.+?)` \| `(.+?)` \| (.+) \|$", re.MULTILINE)
SECTION = re.MULTILINE | re.DOTALL
REFUSED = "refused"
"""How a row begins whose example is an error."""


def read_rows(route: str) -> list[tuple[str, Any, str]]:
    """The field, its example and what the document says of it, by row: of all tables of a route."""
    sections = re.findall(rf"^### .*ields of POST {route}\n(.*?)(?=^#)", DOCUMENT, SECTION)
    assert sections
    return [row for section in sections for row in read_section(section)]


def read_section(section: str) -> list[tuple[str, Any, str]]:
    rows = [(field, json.loads(value), here) for field, value, here in ROW.findall(section)]
    assert len(rows) == section.count("\n| `"), "a row is not read"
    return rows


@pytest.mark.parametrize(("field", "value", "here"), read_rows("/v1/audio/speech"))
async def test_fields_of_speech(
    asgi: httpx.AsyncClient, field: str, value: object, here: str
) -> None:
    response = await asgi.post("/v1/audio/speech", json={"input": "Hello.", field: value})
    assert response.is_error == here.startswith(REFUSED), response.text
    assert not response.is_error or response.json()["error"]["param"] == field


@pytest.mark.parametrize(("field", "value", "here"), read_rows("/v1/audio/transcriptions"))
async def test_fields_of_transcriptions(
    asgi: httpx.AsyncClient, field: str, value: object, here: str
) -> None:
    file = io.BytesIO()
    soundfile.write(file, np.zeros(16_000, np.float32), 16_000, format="WAV")
    form = {"response_format": "verbose_json"} if field.startswith("timestamp") else {}
    form[field] = value if isinstance(value, str) else json.dumps(value)
    response = await asgi.post(
        "/v1/audio/transcriptions", data=form, files={"file": ("a.wav", file.getvalue())}
    )
    assert response.is_error == here.startswith(REFUSED), response.text
    assert not response.is_error or response.json()["error"]["param"] == field


MISSING = [
    route
    for line in re.findall(r"^Not served: (.*)\.$", DOCUMENT, re.MULTILINE)
    for route in re.findall(r"`(\w+) (/[\w/{}-]+)`", line)
]


@pytest.mark.parametrize(("method", "path"), sorted(set(MISSING)))
async def test_what_is_not_there(asgi: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await asgi.request(method, path)
    assert answer.status_code in (404, 405), answer.text


def test_options_of_qwen3_tts_have_vllm_omnis_names() -> None:
    (line,) = re.findall(r"^- (.*) are options of \[Qwen3-TTS\]", DOCUMENT, re.MULTILINE)
    names = re.findall(r"`(\w+)`", line)
    assert len(names) == 5
    assert set(names) <= Qwen3TtsOptions.model_fields.keys()


NAMES = re.compile(r"`([a-z0-9][a-z0-9.-]+)`")


def read_names(here: str) -> list[str]:
    """The models' names in the rows that end so."""
    rows = [row.split(" | ") for row in DOCUMENT.splitlines() if row.startswith("| `")]
    return [name for row in rows if here in row[-1] for name in NAMES.findall(row[0])]


@pytest.mark.parametrize("dated", ["", "-2025-12-15"])
async def test_names_of_models(asgi: httpx.AsyncClient, dated: str) -> None:
    spoken = read_names("the default model that speaks")
    assert len(spoken) == 3
    for name in spoken:
        body = {"input": "Hello.", "model": name + dated}
        response = await asgi.post("/v1/audio/speech", json=body)
        assert response.status_code == 200, response.text
    file = io.BytesIO()
    soundfile.write(file, np.zeros(16_000, np.float32), 16_000, format="WAV")
    heard = read_names("the first model that transcribes")
    assert len(heard) == 4
    for name in heard:
        response = await asgi.post(
            "/v1/audio/transcriptions",
            data={"model": name + dated},
            files={"file": ("a.wav", file.getvalue())},
        )
        assert response.status_code == 200, response.text
