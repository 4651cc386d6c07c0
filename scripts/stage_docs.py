"""Puts the sources of the documentation site together: python scripts/stage_docs.py FOLDER

The tracked documents keep their places, so that their links work on the site as in the repository.
Two references are made from the code: the HTTP API's OpenAPI document, and a table for each message
of the sockets. `make docs` runs this, then MkDocs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from cantata.api.adapters import deepgram_messages, elevenlabs_messages
from cantata.api.app import create_app
from cantata.api.realtime import client_events, server_events
from cantata.api.speech import messages
from cantata.pipeline.service import PipelineService

ROOT = Path(__file__).parents[1]
SOURCES = (
    "*.md",
    "docs",
    "docker/README.md",
    "benchmarks/gpu/README.md",
    "frontend/gradio_streaming_speech/README.md",
    "examples",
    "models/*/*/MODEL_CARD.md",
    "models/*/*/deploy*.yaml",
)
"""Globs of git."""
_LABEL = re.compile(r"^(```\w+) .*$", re.MULTILINE)
"""Of a block of code: tests read it, Markdown's extensions do not."""
SOCKETS = {
    "/v1/audio/speech/stream: from clients": messages.ClientMessage,
    "/v1/audio/speech/stream: from the server": messages.ServerMessage,
    "/v1/realtime: from clients": client_events.AnyClientEvent,
    "/v1/realtime: from the server": server_events.ServerEvent,
    "Deepgram: from clients": deepgram_messages.DeepgramClientMessage,
    "Deepgram: from the server": deepgram_messages.DeepgramServerMessage,
    "ElevenLabs: from the server": elevenlabs_messages.ElevenLabsAudio,
}


def main() -> None:
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    globs = [f":(glob){one}" if "*" in one else one for one in SOURCES]
    listed = subprocess.run(
        ["git", "ls-files", "-z", *globs], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if copy.suffix == ".md":
            text = (ROOT / name).read_text(encoding="utf-8")
            copy.write_text(_LABEL.sub(r"\1", text), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / name, copy)
    reference = target / "docs" / "reference"
    reference.mkdir()
    for name, lines in (("http.md", route_lines()), ("messages.md", message_lines())):
        (reference / name).write_text("\n".join(lines), encoding="utf-8")


def route_lines() -> Iterator[str]:
    """A section for each route: what it takes, and what it answers."""
    document = create_app(PipelineService([])).openapi()
    schemas = document["components"]["schemas"]
    yield "# HTTP reference\n"
    yield "Made from the server's OpenAPI document, which it serves at `/openapi.json`."
    yield "[The protocol](../protocol.md) explains the routes, with examples.\n"
    for path, operations in sorted(document["paths"].items()):
        for method, operation in operations.items():
            yield f"## {method.upper()} {path}\n\n{operation.get('description', '')}\n"
            if parameters := operation.get("parameters"):
                yield "| parameter | in | type | |\n|-|-|-|-|"
                for one in parameters:
                    kind, about = describe_type(one["schema"]), clean(one.get("description", ""))
                    yield f"| `{one['name']}` | {one['in']} | {kind} | {about} |"
                yield ""
            for media, content in operation.get("requestBody", {}).get("content", {}).items():
                yield f"Body, `{media}`:\n"
                yield from field_lines(resolve(content["schema"], schemas))
            codes = ", ".join(f"`{code}`" for code in operation["responses"])
            yield f"Answers: {codes}\n"


def resolve(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, if this is a reference to one."""
    reference = schema.get("$ref")
    found: dict[str, Any] = schemas[reference.rsplit("/", 1)[-1]] if reference else schema
    return found


def message_lines() -> Iterator[str]:
    """A section for each socket and direction, a table for each of its messages."""
    yield "# Message reference\n"
    yield "Made from the server's message types. [The protocol](../protocol.md) explains them.\n"
    for title, messages_type in SOCKETS.items():
        yield f"## {title}\n"
        for kind in list_models(messages_type):
            yield from model_lines(kind)


def list_models(kind: Any) -> Sequence[type[BaseModel]]:
    """The models of a union, however it is annotated; of a base class, those derived from it."""
    if get_origin(kind) is Annotated:
        return list_models(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [model for part in get_args(kind) for model in list_models(part)]
    derived = kind.__subclasses__()
    return [model for part in derived for model in list_models(part)] if derived else [kind]


def model_lines(kind: type[BaseModel]) -> Iterator[str]:
    """A heading, what the message is for, and its fields."""
    schema = kind.model_json_schema(by_alias=True)
    yield f"### {kind.__name__}\n\n{clean(schema.get('description', ''))}\n"
    yield from field_lines(schema)


def field_lines(schema: dict[str, Any]) -> Iterator[str]:
    """A table of an object's fields."""
    required = schema.get("required", ())
    yield "| field | type | default | |\n|-|-|-|-|"
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in required else f"`{json.dumps(field.get('default'))}`"
        about = clean(field.get("description", ""))
        yield f"| `{name}` | {describe_type(field)} | {default} | {about} |"
    yield ""


def clean(text: str) -> str:
    """On one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def describe_type(field: dict[str, Any]) -> str:
    """In a few words."""
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(one)}`" for one in field["enum"])
    if "$ref" in field:
        return f"`{field['$ref'].rsplit('/', 1)[-1]}`"
    for together in ("anyOf", "oneOf"):
        if together in field:
            return " or ".join(describe_type(one) for one in field[together])
    if field.get("type") == "array":
        return f"list of {describe_type(field.get('items', {}))}"
    return str(field.get("type", "any"))


if __name__ == "__main__":
    main()
