"""/v1/files: OpenAI's files, as far as batches need them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import FileResponse, Response

from cantata.api.access.security import get_key_label
from cantata.api.batches.objects import DeletedFile, FileList, FileObject, Purpose, describe_file
from cantata.api.batches.uploads import UploadFields, read_upload
from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.jobs.opening import get_file_store, get_job_store
from cantata.api.openapi import ERRORS, describe_bytes
from cantata.api.transcription.body import close_files
from cantata.contract.data.errors import InvalidRequest
from cantata.jobs.records import ListPage

router = APIRouter(tags=["files"], route_class=CheckedRoute, responses=ERRORS)

_FORM = "multipart/form-data"
_MEDIA_TYPE = "application/octet-stream"
MAX_PAGE = 10_000


def _build_form_schema() -> dict[str, Any]:
    schema = UploadFields.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    fields = schema["properties"]
    del fields["expires_after"]
    fields["expires_after[anchor]"] = {"type": "string", "enum": ["created_at"]}
    fields["expires_after[seconds]"] = {"type": "integer", "minimum": 3_600, "maximum": 2_592_000}
    fields["file"] = {"type": "string", "format": "binary", "minLength": 1}
    schema["required"] = ["file", "purpose"]
    return {"requestBody": {"required": True, "content": {_FORM: {"schema": schema}}}}


@router.post("/v1/files", openapi_extra=_build_form_schema())
async def upload_file(request: Request, context: Context) -> FileObject:
    """Keep a file. See docs/protocol.md."""
    store = get_file_store(context)
    if not request.headers.get("content-type", "").lower().startswith(_FORM):
        raise InvalidRequest(f"the body must be a form, sent as {_FORM}")
    form = await request.form(max_files=2, max_fields=20, max_part_size=1 << 16)
    try:
        sent = read_upload(form, context.settings.jobs.limits)
        owner = get_key_label(request.scope)
        kept = await store.add(owner, sent.purpose, sent.name, sent.file, sent.expires_s)
        return describe_file(kept)
    finally:
        close_files(form)


@router.get("/v1/files")
async def list_files(
    request: Request,
    context: Context,
    purpose: Purpose | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = MAX_PAGE,
    after: str | None = None,
    order: Literal["asc", "desc"] = "desc",
) -> FileList:
    """Files of this client."""
    store, page = get_file_store(context), ListPage(limit, after, newest_first=order == "desc")
    if not get_job_store(context).exists:
        return FileList(data=[], has_more=False)
    found, more = await store.list_page(get_key_label(request.scope), page, purpose)
    return FileList(data=[describe_file(one) for one in found], has_more=more)


@router.get("/v1/files/{file_id}")
async def get_file(file_id: str, request: Request, context: Context) -> FileObject:
    """One file."""
    return describe_file(await get_file_store(context).find(file_id, get_key_label(request.scope)))


@router.get(
    "/v1/files/{file_id}/content", response_class=Response, responses=describe_bytes(_MEDIA_TYPE)
)
async def get_file_content(file_id: str, request: Request, context: Context) -> Response:
    """The bytes of a file, or a range of them."""
    store = get_file_store(context)
    file = await store.find(file_id, get_key_label(request.scope))
    return FileResponse(store.find_path(file.id), media_type=_MEDIA_TYPE, filename=file.name)


@router.delete("/v1/files/{file_id}")
async def delete_file(file_id: str, request: Request, context: Context) -> DeletedFile:
    """Delete a file that no batch reads."""
    await get_file_store(context).delete(file_id, get_key_label(request.scope))
    return DeletedFile(id=file_id)
