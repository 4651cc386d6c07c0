"""POST /v1/provenance/verify: what a file says of its origin."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, File, UploadFile

from cantata.api.context import Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS
from cantata.api.schemas import WireModel
from cantata.contract.data.errors import PayloadTooLarge
from cantata.media.provenance import find_provenance

router = APIRouter(
    prefix="/v1/provenance", tags=["provenance"], route_class=CheckedRoute, responses=ERRORS
)


class ProvenanceObject(WireModel):
    """What a file says of its origin."""

    object: Literal["provenance"] = "provenance"
    kind: Literal["image", "audio"]
    synthetic: bool | None
    """None: it does not say."""
    digital_source_type: str | None
    """IPTC's."""
    software: str | None
    c2pa: bool
    """It seems to have a C2PA manifest, whose signature is not checked."""
    confidence: Literal["declared", "none"]
    """declared: its tags say so, which anyone can write or remove."""


@router.post("/verify")
async def verify(context: Context, file: Annotated[UploadFile, File()]) -> ProvenanceObject:
    """Look for what says that a picture or a sound file was made by a machine."""
    limit = context.settings.media.max_bytes
    data = await file.read(limit + 1)
    if len(data) > limit:
        raise PayloadTooLarge(f"file is larger than {limit} bytes", "file")
    found = await asyncio.to_thread(find_provenance, data)
    confidence: Literal["declared", "none"] = "none" if found.synthetic is None else "declared"
    return ProvenanceObject(**asdict(found), confidence=confidence)
