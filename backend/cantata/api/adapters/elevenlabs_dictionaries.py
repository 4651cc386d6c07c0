"""ElevenLabs' pronunciation dictionaries: the lexicons that are kept here, by its routes."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, UploadFile

from cantata.api.adapters.elevenlabs_messages import ElevenLabsErrorBody
from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import errors_as
from cantata.api.routes.lexicons import keep_lexicon
from cantata.api.schemas import WireModel
from cantata.api.speech.lexicon_choice import lexicon_store
from cantata.lexicons.store import StoredLexicon

PREFIX = "/v1/pronunciation-dictionaries"

router = APIRouter(
    prefix=PREFIX,
    tags=["elevenlabs"],
    route_class=CheckedRoute,
    responses=errors_as(ElevenLabsErrorBody),
)


class PronunciationDictionary(WireModel):
    """A lexicon, as ElevenLabs' clients read it. It has one version."""

    id: str
    name: str
    description: str
    created_by: str = "cantata"
    creation_time_unix: int
    version_id: str
    latest_version_id: str
    version_rules_num: int
    latest_version_rules_num: int
    permission_on_resource: Literal["admin"] = "admin"


class PronunciationDictionaries(WireModel):
    """GET /v1/pronunciation-dictionaries."""

    pronunciation_dictionaries: list[PronunciationDictionary]
    has_more: bool = False
    next_cursor: str | None = None


@router.post("/add-from-file")
async def add_dictionary(
    context: Context,
    name: Annotated[str, Form()],
    file: Annotated[UploadFile, File()],
    description: Annotated[str | None, Form()] = None,
) -> PronunciationDictionary:
    """As POST /v1/lexicons, for ElevenLabs' clients."""
    return _as_dictionary(await keep_lexicon(context, name, file, description))


@router.get("")
async def list_dictionaries(context: Context) -> PronunciationDictionaries:
    """All lexicons, for ElevenLabs' clients."""
    kept = [_as_dictionary(one) for one in lexicon_store(context).lexicons]
    return PronunciationDictionaries(pronunciation_dictionaries=kept)


@router.get("/{name}")
async def get_dictionary(name: str, context: Context) -> PronunciationDictionary:
    """One lexicon, for ElevenLabs' clients."""
    return _as_dictionary(lexicon_store(context).find(name))


def _as_dictionary(lexicon: StoredLexicon) -> PronunciationDictionary:
    return PronunciationDictionary(
        id=lexicon.id,
        name=lexicon.name,
        description=lexicon.description,
        creation_time_unix=lexicon.created_at,
        version_id=lexicon.id,
        latest_version_id=lexicon.id,
        version_rules_num=len(lexicon.entries),
        latest_version_rules_num=len(lexicon.entries),
    )
