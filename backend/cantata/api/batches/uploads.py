"""The form of POST /v1/files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from cantata.api.batches.objects import ExpiresAfter
from cantata.api.errors import explain_validation
from cantata.api.schemas import WireModel
from cantata.contract.data.errors import InvalidRequest, PayloadTooLarge
from cantata.jobs.batch import FilePurpose
from cantata.jobs.job import JobLimits

_NAME_CHARACTERS = 256


class UploadFields(WireModel):
    """The fields beside `file`."""

    purpose: Literal["batch", "user_data"]
    """`batch`: a request in each line; `user_data`: what requests name, such as a recording."""
    expires_after: ExpiresAfter | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    purpose: FilePurpose
    name: str
    file: BinaryIO
    expires_s: int | None


def read_upload(form: FormData, limits: JobLimits) -> Upload:
    """The file of a form, and what is to become of it.

    Raises:
        InvalidRequest: a field is not valid, or there is not exactly one file.
        PayloadTooLarge: the file is too large for its purpose.
    """
    files = [value for name, value in form.multi_items() if name == "file"]
    if len(files) != 1:
        raise InvalidRequest(f"file: the form has {len(files)} files; send one", "file")
    file = files[0]
    if not isinstance(file, UploadFile):
        raise InvalidRequest("file must be a file, not text", "file")
    try:
        fields = UploadFields.model_validate(_read_fields(form))
    except ValidationError as error:
        raise explain_validation(error.errors(), None) from None
    purpose, size = FilePurpose(fields.purpose), file.size or 0
    limit = limits.max_batch_bytes if purpose is FilePurpose.BATCH else limits.max_file_bytes
    if size > limit:
        raise PayloadTooLarge(
            f"file has {size} bytes; for {fields.purpose!r}, {limit} are kept at most", "file"
        )
    if not size:
        raise InvalidRequest("file is empty", "file")
    expires = fields.expires_after
    return Upload(
        purpose,
        _make_name(file.filename or ""),
        file.file,
        None if expires is None else expires.seconds,
    )


def _read_fields(form: FormData) -> dict[str, object]:
    """Fields by name; parts of `expires_after` as `expires_after[seconds]`."""
    fields: dict[str, object] = {}
    expires: dict[str, object] = {}
    for name, value in form.multi_items():
        if name == "file" or value == "":
            continue
        if not isinstance(value, str):
            raise InvalidRequest(f"{name} must be text, not a file", name)
        if name == "expires_after[seconds]":
            is_number = value.isascii() and value.isdigit() and len(value) < 16
            expires["seconds"] = int(value) if is_number else value
        elif name == "expires_after[anchor]":
            expires["anchor"] = value
        else:
            fields[name] = value
    return fields | ({"expires_after": expires} if expires else {})


def _make_name(sent: str) -> str:
    """A file's name without folders and what no header can have."""
    name = sent.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(_keep_printable(name))[:_NAME_CHARACTERS] or "file"


def _keep_printable(name: str) -> Iterator[str]:
    return (one for one in name if one.isprintable() and not "\ud800" <= one <= "\udfff")
