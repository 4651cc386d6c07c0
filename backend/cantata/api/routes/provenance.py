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
from cantata.watermark.detection import find_mark_in_file
from cantata.watermark.pattern import PUBLIC_KEY, draw_signs

router = APIRouter(
    prefix="/v1/provenance", tags=["provenance"], route_class=CheckedRoute, responses=ERRORS
)


class ManifestObject(WireModel):
    """A C2PA manifest."""

    state: Literal["valid", "invalid", "unreadable"]
    """valid: the file is as it was when the signer signed it."""
    signer: str | None
    """As the certificate calls them. Whether they are who they say is not checked: no list of
    trusted signers is known here."""
    self_signed: bool
    """It was made with `cantata certificate`, for a trial."""
    problems: list[str]
    """C2PA's codes of what is wrong, or why it cannot be read."""


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
    """It seems to have a C2PA manifest."""
    manifest: ManifestObject | None
    """Absent: it has none, or this server cannot read it (`pip install 'cantata[provenance]'`)."""
    watermark: bool | None
    """Whether the sound has this server's mark, or the one that everybody may find. None: a
    picture, or sound that cannot be read."""
    confidence: Literal["signed", "declared", "none"]
    """signed: a manifest says so, and the file is as it was signed. declared: tags say so, which
    anyone can write or remove."""


@router.post("/verify")
async def verify(context: Context, file: Annotated[UploadFile, File()]) -> ProvenanceObject:
    """Look for what says that a picture or a sound file was made by a machine."""
    limit = context.settings.media.max_bytes
    data = await file.read(limit + 1)
    if len(data) > limit:
        raise PayloadTooLarge(f"file is larger than {limit} bytes", "file")
    found = await asyncio.to_thread(find_provenance, data)
    confidence: Literal["signed", "declared", "none"] = "none"
    if found.synthetic is not None:
        signed = found.manifest is not None and found.manifest.state == "valid"
        confidence = "signed" if signed else "declared"
    fields = asdict(found)
    if found.manifest is not None:
        fields["manifest"]["problems"] = list(found.manifest.problems)
    mark = None
    if found.kind == "audio":
        signs = draw_signs(context.settings.watermark_key or PUBLIC_KEY)
        mark = await asyncio.to_thread(find_mark_in_file, data, signs)
    watermark = None if mark is None else mark.found
    return ProvenanceObject(**fields, watermark=watermark, confidence=confidence)
