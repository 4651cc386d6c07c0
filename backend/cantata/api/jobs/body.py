"""The body of POST /v1/jobs: JSON with a text, or a form with a text or a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from cantata.api.errors import explain_validation
from cantata.api.schemas import (
    Name,
    ResponseFormat,
    SampleRate,
    Seed,
    Speed,
    Temperature,
    Text,
    VoiceName,
    WireModel,
)
from cantata.contract.data.errors import InvalidRequest, PayloadTooLarge

FORM, JSON = "multipart/form-data", "application/json"
MAX_JSON_BYTES = 16 << 20
MAX_SPEAKERS = 64
_NUMBERS = ("sample_rate", "speed", "seed", "temperature")
_SWITCHES = (("verify", "true"), ("verify", "false"))


class JobBody(WireModel):
    """POST /v1/jobs."""

    input: Text | None = None
    """The text; a form may have `file` instead."""
    title: Annotated[Text, Field(max_length=300)] | None = None
    """Absent: the document's."""
    model: Name | None = None
    """Absent: the server's default model."""
    voice: VoiceName | None = None
    """Absent: the model's default voice."""
    voices: Annotated[dict[Name, VoiceName], Field(max_length=MAX_SPEAKERS)] = Field(
        default_factory=dict
    )
    """By names of speakers: a line that begins with one and a colon is spoken by that voice."""
    response_format: Literal[ResponseFormat, "m4b", "epub"] = "mp3"
    """`m4b`: one file for all chapters; `epub`: the text with them; others: a file for each."""
    captions: Literal["srt", "vtt"] | None = None
    """Also write captions, beside each file of sound."""
    sample_rate: SampleRate | None = None
    """Hz. Absent: the model's own."""
    speed: Speed = 1.0
    instructions: Text | None = None
    seed: Seed = 0
    """Same seed, same samples."""
    temperature: Temperature | None = None
    """0 is greedy."""
    lexicons: list[Name] = Field(default_factory=list)
    """Kept lexicons, by id or name."""
    verify: bool | Literal["retry"] = False
    """Hear each sentence; `retry`: speak again what is not heard as written."""


async def read_json_body(request: Request) -> JobBody:
    """A JSON body.

    Raises:
        InvalidRequest: a field is not valid.
        PayloadTooLarge: it is held in memory, so longer texts are sent as files.
    """
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_JSON_BYTES:
            raise PayloadTooLarge(
                f"JSON may have up to {MAX_JSON_BYTES} bytes here; send a form with a file", "input"
            )
    try:
        return JobBody.model_validate_json(bytes(data))
    except ValidationError as error:
        raise explain_validation(error.errors(), None) from None


def read_form_body(form: FormData) -> tuple[JobBody, UploadFile | None]:
    """The fields of a form, and its file. An empty field means the same as none. Raises
    InvalidRequest: a field is not valid, or there are several files."""
    files = [value for name, value in form.multi_items() if name == "file"]
    if len(files) > 1:
        raise InvalidRequest(f"file: the form has {len(files)} files; send one", "file")
    file = files[0] if files else None
    if isinstance(file, str):
        raise InvalidRequest("file must be a file, not text; a text is sent as input", "file")
    try:
        return JobBody.model_validate(_read_fields(form)), file
    except ValidationError as error:
        raise explain_validation(error.errors(), None) from None


def _read_fields(form: FormData) -> Mapping[str, Any]:
    fields: dict[str, Any] = {}
    for sent, value in form.multi_items():
        name = sent.removesuffix("[]")
        if name == "file" or name not in JobBody.model_fields or value == "":
            continue
        if not isinstance(value, str):
            raise InvalidRequest(f"{name} must be text, not a file", name)
        if name == "lexicons" and not value.lstrip().startswith("["):
            fields.setdefault(name, []).append(value)
        elif name in (*_NUMBERS, "voices", "lexicons") or (name, value) in _SWITCHES:
            fields[name] = _read_value(value, name)
        else:
            fields[name] = value
    return fields


def _read_value(value: str, name: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"{name} is not valid JSON: {value[:80]!r}", name) from None
