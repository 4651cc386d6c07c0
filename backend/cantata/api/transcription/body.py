"""The form of POST /v1/audio/transcriptions and /v1/audio/translations."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from cantata.api.errors import explain_validation
from cantata.api.schemas import WireModel
from cantata.contract.data.errors import InvalidRequest
from cantata.media.request_media import MediaReader

ResponseFormat = Literal["json", "text", "srt", "vtt", "verbose_json"]
_LISTS = ("timestamp_granularities", "include", "hotwords", "keywords", "languages")
_MAX_FIELDS = 100
MAX_PROMPT_CHARACTERS = 4096


class ServerVadOptions(BaseModel):
    """Where the sound is cut, under OpenAI's names."""

    model_config = ConfigDict(frozen=True)

    type: Literal["server_vad"]
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    prefix_padding_ms: Annotated[int, Field(ge=0, le=5000)] = 300
    silence_duration_ms: Annotated[int, Field(ge=32, le=10_000)] | None = None
    """None: the longer a segment is, the shorter the pause that ends it."""


class TranscriptionBody(BaseModel):
    """OpenAI's fields. Those that are unknown here are ignored: clients send options of other
    models."""

    model_config = ConfigDict(frozen=True)

    model: Annotated[str, Field(max_length=256)] | None = None
    language: Annotated[str, Field(max_length=32)] | None = None
    languages: list[Annotated[str, Field(max_length=32)]] = []
    """Those that may be spoken."""
    prompt: Annotated[str, Field(max_length=MAX_PROMPT_CHARACTERS)] = ""
    hotwords: list[Annotated[str, Field(max_length=128)]] = []
    """Names that may occur; they are put before the prompt."""
    keywords: list[Annotated[str, Field(max_length=128)]] = []
    """OpenAI's name of `hotwords`."""
    temperature: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    """0: greedy, and warmer where that leads into a loop."""
    response_format: ResponseFormat = "json"
    timestamp_granularities: list[Literal["word", "segment"]] = []
    include: list[Literal["logprobs"]] = []
    stream: bool = False
    chunking_strategy: Literal["auto"] | ServerVadOptions = "auto"

    @property
    def bias(self) -> str:
        """The text that biases the words."""
        names = ", ".join((*self.hotwords, *self.keywords))
        return " ".join(part for part in (names, self.prompt) if part)

    @property
    def only_language(self) -> str | None:
        """The one that is spoken. None: the model finds out."""
        return self.language or (self.languages[0] if len(self.languages) == 1 else None)


@dataclass(frozen=True, slots=True)
class SentFile:
    file: BinaryIO
    """On disk, if it is large."""
    param: str = "file"


def read_form(form: FormData) -> tuple[TranscriptionBody, SentFile]:
    """The fields and the recording of a form. An empty field means the same as none. Raises
    InvalidRequest: a field is not valid, or there is not exactly one file."""
    files = [value for name, value in form.multi_items() if name == "file"]
    if len(files) != 1:
        raise InvalidRequest(f"file: the form has {len(files)} files; send one", "file")
    if not isinstance(files[0], UploadFile):
        raise InvalidRequest("file must be a file, not text", "file")
    try:
        body = TranscriptionBody.model_validate(_read_fields(form))
    except ValidationError as error:
        raise explain_validation(error.errors(), None) from None
    check_stream(body)
    return body, SentFile(files[0].file)


def check_stream(body: TranscriptionBody) -> None:
    """Reject a form of answer that cannot be streamed. Raises InvalidRequest: lists those that
    can."""
    if body.stream and body.response_format in ("srt", "vtt"):
        raise InvalidRequest(
            f"response_format {body.response_format!r} cannot be streamed; valid with stream: "
            "json, text, verbose_json",
            "response_format",
        )


def close_files(form: FormData) -> None:
    """Close a form's files. Unlike the form's own method, this waits for no thread, so that a
    cancellation cannot leave one open."""
    for _, value in form.multi_items():
        if isinstance(value, UploadFile):
            value.file.close()


def _read_fields(form: FormData) -> Mapping[str, Any]:
    """Values by field; lists may be sent as `name[]`, repeated, or as JSON."""
    fields: dict[str, Any] = {}
    for sent, value in form.multi_items():
        name = sent.removesuffix("[]")
        if name == "file" or name not in TranscriptionBody.model_fields or value == "":
            continue
        if not isinstance(value, str):
            raise InvalidRequest(f"{name} must be text, not a file", name)
        if name in _LISTS:
            fields.setdefault(name, []).extend(_read_list(value, name))
        elif name == "chunking_strategy" and value.lstrip().startswith("{"):
            fields[name] = _read_json(value, name)
        else:
            fields[name] = value
    return fields


def _read_list(value: str, name: str) -> list[Any]:
    if value.lstrip().startswith("["):
        read = _read_json(value, name)
        return read if isinstance(read, list) else [value]
    return [value]


def _read_json(value: str, name: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        raise InvalidRequest(f"{name} is not valid JSON: {value[:80]!r}", name) from None


_BESIDE_BYTES = 1 << 20
"""Room for the other fields."""


class InputRecording(WireModel):
    """A file in base64. What format it has is found out; a field `format` is ignored."""

    data: Annotated[str, Field(min_length=1)]


class JsonTranscriptionBody(TranscriptionBody, WireModel):
    """The form's fields, and the recording."""

    input_audio: InputRecording


async def read_json(request: Request, media: MediaReader) -> tuple[JsonTranscriptionBody, SentFile]:
    """The fields and the recording of a JSON body, which is held in memory: larger ones are sent as
    forms.

    Raises:
        InvalidRequest: a field is not valid.
        HTTPException: 413, it is too large.
    """
    limit = media.limits.max_bytes * 4 // 3 + _BESIDE_BYTES
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > limit:
            raise HTTPException(413, f"JSON may have up to {limit} bytes here; send a form")
    try:
        body = JsonTranscriptionBody.model_validate_json(bytes(data))
    except ValidationError as error:
        raise explain_validation(error.errors(), None) from None
    check_stream(body)
    param = "input_audio.data"
    recording = await media.unpack_sound(body.input_audio.data, param)
    return body, SentFile(io.BytesIO(recording), param)
