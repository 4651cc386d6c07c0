"""ElevenLabs' pronunciation dictionaries: the lexicons that are kept here, by its routes."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, Response, UploadFile
from pydantic import Field, StringConstraints

from cantata.api.adapters.elevenlabs_messages import ElevenLabsErrorBody
from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import describe_errors
from cantata.api.routes.lexicons import keep_lexicon
from cantata.api.schemas import WireModel
from cantata.api.speech.voice_choice import get_lexicon_store
from cantata.contract.data.errors import InvalidLexicon, LexiconNotFound
from cantata.contract.data.request import LexiconEntry
from cantata.lexicons.pls import MAX_CHARACTERS, MAX_ENTRIES, collect_entries, write_pls
from cantata.lexicons.store import StoredLexicon
from cantata.text.phone_alphabets import to_ipa

PREFIX = "/v1/pronunciation-dictionaries"

router = APIRouter(
    prefix=PREFIX,
    tags=["elevenlabs"],
    route_class=CheckedRoute,
    responses=describe_errors(ElevenLabsErrorBody),
)


RuleText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CHARACTERS)
]


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
    """Adds a lexicon, as POST /v1/lexicons does, for ElevenLabs' clients."""
    return _describe_lexicon(await keep_lexicon(context, name, file, description))


class AliasRule(WireModel):
    """A word that is read as another text."""

    type: Literal["alias"]
    string_to_replace: RuleText
    alias: RuleText

    def to_entry(self) -> LexiconEntry:
        return LexiconEntry(
            _collapse_spaces(self.string_to_replace), alias=_collapse_spaces(self.alias)
        )


class PhonemeRule(WireModel):
    """A word that is read by its phones."""

    type: Literal["phoneme"]
    string_to_replace: RuleText
    phoneme: RuleText
    alphabet: str = "ipa"

    def to_entry(self) -> LexiconEntry:
        """The rule as a lexicon has it. Raises InvalidLexicon: phones that are none."""
        try:
            phones = to_ipa(self.phoneme, self.alphabet.lower())
        except ValueError as error:
            raise InvalidLexicon(f"rule for {self.string_to_replace!r}: {error}", "rules") from None
        return LexiconEntry(_collapse_spaces(self.string_to_replace), phones=phones)


class RulesBody(WireModel):
    """POST /v1/pronunciation-dictionaries/add-from-rules."""

    name: str
    description: str | None = None
    rules: Annotated[
        list[Annotated[AliasRule | PhonemeRule, Field(discriminator="type")]],
        Field(min_length=1, max_length=MAX_ENTRIES),
    ]


@router.post("/add-from-rules")
async def add_rules(context: Context, body: RulesBody) -> PronunciationDictionary:
    """Adds a lexicon of rules, for ElevenLabs' clients."""
    entries = collect_entries([rule.to_entry() for rule in body.rules], "rules")
    store = get_lexicon_store(context)
    return _describe_lexicon(await store.add(body.name, entries, body.description or ""))


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())


@router.get("")
async def list_dictionaries(context: Context) -> PronunciationDictionaries:
    """All lexicons, for ElevenLabs' clients."""
    kept = [_describe_lexicon(one) for one in get_lexicon_store(context).lexicons]
    return PronunciationDictionaries(pronunciation_dictionaries=kept)


@router.get("/{name}")
async def get_dictionary(name: str, context: Context) -> PronunciationDictionary:
    """One lexicon, for ElevenLabs' clients."""
    return _describe_lexicon(get_lexicon_store(context).find(name))


@router.get("/{name}/{version}/download", response_class=Response)
async def download_dictionary(name: str, version: str, context: Context) -> Response:
    """The file of a lexicon, for ElevenLabs' clients: PLS 1.0."""
    found = get_lexicon_store(context).find(name)
    if version != found.id:
        raise LexiconNotFound(f"lexicon {found.name!r} has one version: {found.id}", "version")
    text = await asyncio.to_thread(write_pls, found.entries)
    return Response(text, media_type="application/pls+xml")


def _describe_lexicon(lexicon: StoredLexicon) -> PronunciationDictionary:
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
