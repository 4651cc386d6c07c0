"""The body of POST /v1/images/edits: a multipart form, or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from cantata.api.errors import explain_validation
from cantata.api.images.body import EditBody, ImageOptions
from cantata.api.images.validation import SentPicture
from cantata.contract.data.errors import InvalidRequest
from cantata.media.request_media import MediaReader

MAX_SENT_PICTURES = 16
_MAX_FIELDS = 100
_FORM = "multipart/form-data"
_JSON = "application/json"
_IMAGE = ("image", "image[]")
_UNSUPPORTED = ("mask", "markup")


class JsonEditBody(EditBody):
    """The fields of an edit as JSON, with the pictures in it."""

    image: Any = None
    """A `data:` URL, base64, an http(s) URL if the server fetches, an object with one of them as
    `url`, `image_url` or `b64_json`, or a list of such."""
    images: Any = None
    """Another name of `image`."""
    mask: Any = None

    def own_options(self, names: Iterable[str]) -> dict[str, Any]:
        """Values as they were sent: JSON has types."""
        return ImageOptions.own_options(self, names)


async def read_edit(request: Request, media: MediaReader) -> tuple[EditBody, list[SentPicture]]:
    """The fields and the pictures of a body. An empty field of a form means the same as none: forms
    know no null. Raises InvalidRequest: neither a form nor JSON, or a field of it is not valid."""
    sent_as = request.headers.get("content-type", "").lower()
    if sent_as.startswith(_JSON):
        return await _read_json(request, media)
    if not sent_as.startswith(_FORM):
        raise InvalidRequest(f"the body must be a form, sent as {_FORM}, or JSON, sent as {_JSON}")
    # One more than is valid: the message says more than the parser's.
    async with request.form(max_files=MAX_SENT_PICTURES + 8, max_fields=_MAX_FIELDS) as form:
        files = _collect_files(form)
        fields = _collect_fields(form)
        return _build_body(fields), [
            SentPicture(await file.read(), f"image[{number}]" if len(files) > 1 else "image")
            for number, file in enumerate(files)
        ]


async def _read_json(request: Request, media: MediaReader) -> tuple[EditBody, list[SentPicture]]:
    try:
        body = JsonEditBody.model_validate_json(await request.body())
    except ValidationError as error:
        raise explain_validation(error.errors(), None) from None
    if body.mask is not None:
        raise _build_unsupported_error("mask")
    param, given = ("images", body.images) if body.image is None else ("image", body.image)
    sources = given if isinstance(given, list) else [] if given is None else [given]
    _check_count(len(sources))
    params = [f"{param}[{n}]" if len(sources) > 1 else param for n in range(len(sources))]
    return body, [
        SentPicture(await media.load_picture(_get_source(source, place), place), place)
        for source, place in zip(sources, params, strict=True)
    ]


def _get_source(sent: Any, param: str) -> str:
    """The URL or base64 of a picture, which clients put into objects of several shapes."""
    while isinstance(sent, dict):
        inner = (sent.get(name) for name in ("url", "image_url", "b64_json", "data"))
        sent = next((value for value in inner if value is not None), None)
    if not isinstance(sent, str):
        raise InvalidRequest(
            f"{param} must be a picture: a data: URL, base64, or an object with one as url", param
        )
    return sent


def _check_count(pictures: int) -> None:
    if not pictures:
        raise InvalidRequest("image is required: one picture or several", "image")
    if pictures > MAX_SENT_PICTURES:
        raise InvalidRequest(
            f"image: {pictures} pictures; valid: up to {MAX_SENT_PICTURES}", "image"
        )


def _build_unsupported_error(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"{name}: no model here edits within a {name}; describe the place in the prompt", name
    )


def _collect_files(form: FormData) -> Sequence[UploadFile]:
    files = []
    for name, value in form.multi_items():
        if name in _UNSUPPORTED and value != "":
            raise _build_unsupported_error(name)
        if name not in _IMAGE:
            continue
        if not isinstance(value, UploadFile):
            raise InvalidRequest(f"{name} must be a file", "image")
        files.append(value)
    _check_count(len(files))
    return files


def _collect_fields(form: FormData) -> Mapping[str, str]:
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


def _build_body(fields: Mapping[str, str]) -> EditBody:
    try:
        # A form has only text: its numbers are read from it.
        return EditBody.model_validate_strings(dict(fields), strict=False)
    except ValidationError as error:
        raise explain_validation(error.errors(), None) from None
