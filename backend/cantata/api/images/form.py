"""The multipart body of POST /v1/images/edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from cantata.api.errors import explain_validation
from cantata.api.images.body import EditBody
from cantata.api.images.order import SentPicture
from cantata.contract.data.errors import InvalidRequest

MAX_SENT_PICTURES = 16
_MAX_FIELDS = 100
_FORM = "multipart/form-data"
_IMAGE = ("image", "image[]")
_UNSUPPORTED = ("mask", "markup")


async def read_edit(request: Request) -> tuple[EditBody, list[SentPicture]]:
    """The fields and the files of a form. An empty field means the same as none: forms know no
    null.

    Raises:
        InvalidRequest: not such a form, or a field of it is not valid.
    """
    if not request.headers.get("content-type", "").lower().startswith(_FORM):
        raise InvalidRequest(f"the body must be a form, sent as {_FORM}")
    # One more than is valid: the message says more than the parser's.
    async with request.form(max_files=MAX_SENT_PICTURES + 8, max_fields=_MAX_FIELDS) as form:
        files = _files(form)
        fields = _fields(form)
        return _body(fields), [
            SentPicture(await file.read(), f"image[{number}]" if len(files) > 1 else "image")
            for number, file in enumerate(files)
        ]


def _files(form: FormData) -> Sequence[UploadFile]:
    files = []
    for name, value in form.multi_items():
        if name in _UNSUPPORTED and value != "":
            raise InvalidRequest(
                f"{name}: no model here edits within a {name}; describe the place in the prompt",
                name,
            )
        if name not in _IMAGE:
            continue
        if not isinstance(value, UploadFile):
            raise InvalidRequest(f"{name} must be a file", "image")
        files.append(value)
    if not files:
        raise InvalidRequest("image is required: one file or several", "image")
    if len(files) > MAX_SENT_PICTURES:
        raise InvalidRequest(
            f"image: {len(files)} pictures; valid: up to {MAX_SENT_PICTURES}", "image"
        )
    return files


def _fields(form: FormData) -> Mapping[str, str]:
    fields = {}
    for name, value in form.multi_items():
        if name in _IMAGE:
            continue
        if not isinstance(value, str):
            if name not in EditBody.model_fields:
                continue
            raise InvalidRequest(f"{name} must be text, not a file", name)
        if value or name == "prompt":
            fields[name] = value
    return fields


def _body(fields: Mapping[str, str]) -> EditBody:
    try:
        # A form has only text: its numbers are read from it.
        return EditBody.model_validate_strings(dict(fields), strict=False)
    except ValidationError as error:
        raise explain_validation(error.errors(), None) from None
