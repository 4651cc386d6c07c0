"""The same request as JSON, with the recording in it: what some clients send instead of a form."""

from __future__ import annotations

import io
from typing import Annotated

from pydantic import Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from cantata.api.errors import explain_validation
from cantata.api.schemas import WireModel
from cantata.api.transcription.body import SentFile, TranscriptionBody, check_stream
from cantata.media.request_media import MediaReader

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
