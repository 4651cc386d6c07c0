"""/v1/lexicons: pronunciation lexicons that are kept."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, Request, UploadFile

from cantata.api.access.api_keys import is_local_program
from cantata.api.access.security import has_key
from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS
from cantata.api.schemas import WireModel
from cantata.api.speech.voice_choice import get_lexicon_store
from cantata.contract.data.errors import Forbidden, PayloadTooLarge
from cantata.lexicons.pls import read_pls
from cantata.lexicons.store import StoredLexicon


class LexiconEntryObject(WireModel):
    """How a word is said."""

    grapheme: str
    alias: str
    """Empty: by `phones`."""
    phones: str
    """IPA."""


class LexiconObject(WireModel):
    """A lexicon; `entries` only where one is asked for."""

    object: Literal["lexicon"] = "lexicon"
    id: str
    name: str
    description: str
    created_at: int
    """Unix time."""
    entry_count: int
    entries: list[LexiconEntryObject] | None = None


class LexiconList(WireModel):
    """GET /v1/lexicons; the oldest first."""

    lexicons: list[LexiconObject]


class DeletedLexicon(WireModel):
    """The answer to DELETE /v1/lexicons/{name}."""

    object: Literal["lexicon.deleted"] = "lexicon.deleted"
    id: str
    deleted: Literal[True] = True


router = APIRouter(tags=["lexicons"], route_class=CheckedRoute, responses=ERRORS)


@router.post("/v1/lexicons")
async def upload_lexicon(
    context: Context,
    name: Annotated[str, Form()],
    file: Annotated[UploadFile, File()],
    description: Annotated[str | None, Form()] = None,
) -> LexiconObject:
    """Keep a lexicon in PLS 1.0."""
    return _describe(await keep_lexicon(context, name, file, description))


@router.get("/v1/lexicons")
async def list_lexicons(context: Context) -> LexiconList:
    """All lexicons, without their entries."""
    return LexiconList(lexicons=[_describe(one) for one in get_lexicon_store(context).lexicons])


@router.get("/v1/lexicons/{name}")
async def get_lexicon(name: str, context: Context) -> LexiconObject:
    """One lexicon, by id or name, with its entries."""
    found = get_lexicon_store(context).find(name)
    entries = [
        LexiconEntryObject(grapheme=one.grapheme, alias=one.alias, phones=one.phones)
        for one in found.entries
    ]
    return _describe(found).model_copy(update={"entries": entries})


@router.delete("/v1/lexicons/{name}")
async def delete_lexicon(name: str, context: Context, request: Request) -> DeletedLexicon:
    """Delete a lexicon, by id or name: with an API key, or by a program on this machine."""
    if not (has_key(request.scope) or is_local_program(request.scope)):
        raise Forbidden("a lexicon is deleted with an API key, or on the server's own machine")
    return DeletedLexicon(id=(await get_lexicon_store(context).remove(name)).id)


async def keep_lexicon(
    context: ApiContext, name: str, file: UploadFile, description: str | None
) -> StoredLexicon:
    """Keep the lexicon of a form. Raises CantataError: the server keeps none, or not this one."""
    store, limit = get_lexicon_store(context), context.settings.max_body_bytes
    data = await file.read(limit + 1)
    if len(data) > limit:
        raise PayloadTooLarge(f"file is larger than {limit} bytes", "file")
    entries = await asyncio.to_thread(read_pls, data)
    return await store.add(name, entries, description or "")


def _describe(lexicon: StoredLexicon) -> LexiconObject:
    return LexiconObject(
        id=lexicon.id,
        name=lexicon.name,
        description=lexicon.description,
        created_at=lexicon.created_at,
        entry_count=len(lexicon.entries),
    )
