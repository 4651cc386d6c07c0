"""/v1/batches: OpenAI's batches, answered with what live requests leave."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from cantata.api.access.security import get_key_label
from cantata.api.batches.objects import BatchList, BatchObject, CreateBatchBody, describe_batch
from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.jobs.opening import get_batch_store, get_job_store
from cantata.api.openapi import ERRORS
from cantata.jobs.batch import NewBatch
from cantata.jobs.records import ListPage

router = APIRouter(tags=["batches"], route_class=CheckedRoute, responses=ERRORS)

MAX_PAGE = 100


@router.post("/v1/batches")
async def create_batch(body: CreateBatchBody, request: Request, context: Context) -> BatchObject:
    """Answer the requests of a file in the background. See docs/protocol.md."""
    expires = body.output_expires_after
    new = NewBatch(
        owner=get_key_label(request.scope),
        endpoint=body.endpoint,
        input_file=body.input_file_id,
        metadata=body.metadata,
        output_expires_s=None if expires is None else expires.seconds,
    )
    return describe_batch(await get_batch_store(context).add(new))


@router.get("/v1/batches")
async def list_batches(
    request: Request,
    context: Context,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 20,
    after: str | None = None,
) -> BatchList:
    """Batches of this client, the newest first."""
    store = get_batch_store(context)
    if not get_job_store(context).exists:
        return BatchList(data=[], has_more=False)
    found, more = await store.list_page(get_key_label(request.scope), ListPage(limit, after))
    return BatchList(data=[describe_batch(one) for one in found], has_more=more)


@router.get("/v1/batches/{batch_id}")
async def get_batch(batch_id: str, request: Request, context: Context) -> BatchObject:
    """One batch, as far as it is."""
    owner = get_key_label(request.scope)
    return describe_batch(await get_batch_store(context).find(batch_id, owner))


@router.post("/v1/batches/{batch_id}/cancel")
async def cancel_batch(batch_id: str, request: Request, context: Context) -> BatchObject:
    """End a batch with the answers that it has."""
    owner = get_key_label(request.scope)
    return describe_batch(await get_batch_store(context).cancel(batch_id, owner))
