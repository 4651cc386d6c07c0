"""Request options beyond text, voice and seed."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cantata_layers.request_options import TopK
from cantata_models.fish_speech.turns import DEFAULT_BYTES


class SharedOptions(BaseModel):
    """Request fields of both layouts. None means the published default."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Of the plain distribution, before the temperature."""
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    """S2 accepts it and does not use it: it draws repeated codes again instead."""
    max_new_tokens: Annotated[int, Field(ge=2)] | None = None
    """One more than the maximum number of frames of what is spoken in one go."""


class S1Options(SharedOptions):
    """S1's."""


class S2Options(SharedOptions):
    chunk_length: Annotated[int, Field(ge=1)] = DEFAULT_BYTES
    """The most bytes of a group of turns, in UTF-8."""

    top_k: TopK | None = None
    """0 means all."""
