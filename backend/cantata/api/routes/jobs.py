"""/v1/jobs: books and other texts that are spoken in the background and kept."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import FileResponse, Response

from cantata.api.access.security import get_key_label
from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.jobs.body import FORM, JSON, JobBody, read_form_body, read_json_body
from cantata.api.jobs.events import JOB_EVENTS, JobEventStream, read_last_id
from cantata.api.jobs.objects import DeletedJob, JobList, JobObject, describe_job
from cantata.api.jobs.opening import get_job_store, open_job
from cantata.api.openapi import ERRORS, describe_bytes, describe_events
from cantata.api.speech.framing import SSE_MEDIA_TYPE
from cantata.api.transcription.body import close_files
from cantata.audio.formats import FORMATS
from cantata.contract.data.errors import InvalidRequest, JobNotFound
from cantata.jobs.results import CAPTIONS, WHOLE

router = APIRouter(tags=["jobs"], route_class=CheckedRoute, responses=ERRORS)


def _build_body_schemas() -> dict[str, Any]:
    """The form, and the JSON, for the OpenAPI document."""
    reference = "#/components/schemas/{model}"
    as_json = JobBody.model_json_schema(ref_template=reference)
    as_form = JobBody.model_json_schema(ref_template=reference)
    for schema in (as_json, as_form):
        schema.pop("$defs", None)
    as_json["required"] = ["input"]
    as_form["properties"]["file"] = {"type": "string", "format": "binary"}
    content = {JSON: {"schema": as_json}, FORM: {"schema": as_form}}
    return {"requestBody": {"required": True, "content": content}}


@router.post("/v1/jobs", openapi_extra=_build_body_schemas())
async def create_job(request: Request, context: Context) -> JobObject:
    """Speak a text or a document in the background. See docs/protocol.md."""
    get_job_store(context)
    context.lifecycle.check()
    owner = get_key_label(request.scope)
    sent_as = request.headers.get("content-type", "").lower()
    if sent_as.startswith(JSON):
        return describe_job(await open_job(context, await read_json_body(request), None, owner))
    if not sent_as.startswith(FORM):
        raise InvalidRequest(f"the body must be a form, sent as {FORM}, or JSON, sent as {JSON}")
    form = await request.form(max_files=2, max_fields=200, max_part_size=1 << 20)
    try:
        body, file = read_form_body(form)
        return describe_job(await open_job(context, body, file, owner))
    finally:
        close_files(form)


@router.get("/v1/jobs")
async def list_jobs(request: Request, context: Context) -> JobList:
    """All jobs of this client, without chapters and files."""
    store = get_job_store(context)
    jobs = await store.list_all(get_key_label(request.scope)) if store.exists else []
    return JobList(data=[describe_job(one, whole=False) for one in jobs])


@router.get("/v1/jobs/{id}")
async def get_job(id: str, request: Request, context: Context) -> JobObject:
    """One job, as far as it is."""
    return describe_job(await get_job_store(context).find(id, get_key_label(request.scope)))


@router.get(
    "/v1/jobs/{id}/events",
    response_class=Response,
    responses={
        **describe_events(SSE_MEDIA_TYPE, JOB_EVENTS),
        204: {"description": "There are no more."},
    },
)
async def stream_job_events(
    id: str,
    request: Request,
    context: Context,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """A job's progress, from its beginning or behind `Last-Event-ID`."""
    store = get_job_store(context)
    after = read_last_id(last_event_id)
    job = await store.find(id, get_key_label(request.scope))
    if job.status.is_final and not await store.list_events(id, after, 1):
        return Response(status_code=204)  # clients that reconnect by themselves stop at that
    return JobEventStream(context, store, id, after)


@router.post("/v1/jobs/{id}/cancel")
async def cancel_job(id: str, request: Request, context: Context) -> JobObject:
    """End a job before it is done."""
    return describe_job(await get_job_store(context).cancel(id, get_key_label(request.scope)))


@router.delete("/v1/jobs/{id}")
async def delete_job(id: str, request: Request, context: Context) -> DeletedJob:
    """Delete a job and its files, whatever it is doing."""
    await get_job_store(context).delete(id, get_key_label(request.scope))
    return DeletedJob(id=id)


@router.get(
    "/v1/jobs/{id}/files/{file}",
    response_class=Response,
    responses=describe_bytes(
        *(one.media_type for one in FORMATS.values()), *WHOLE.values(), *CAPTIONS.values()
    ),
)
async def get_job_file(id: str, file: str, request: Request, context: Context) -> Response:
    """A result of a job, or a range of it."""
    store = get_job_store(context)
    job = await store.find(id, get_key_label(request.scope))
    found = next((one for one in job.files if one.name == file), None)
    if found is None:
        names = ", ".join(one.name for one in job.files[:20]) or "none yet"
        raise JobNotFound(f"the job has no file {file[:100]!r}; it has: {names}", "file")
    return FileResponse(
        store.find_results(id) / found.name, media_type=found.media_type, filename=found.name
    )
