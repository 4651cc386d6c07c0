"""Request options beyond text, voice and seed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cantata_models.voxcpm2.inputs import DEFAULT_STEPS


class RequestOptions(BaseModel):
    """Request fields specific to this model."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    mode: Literal["voice_clone", "continuation", "combined"] | None = None
    """What a recording is for. By default, one with a transcript is continued, any other
    imitated."""
    inference_timesteps: Annotated[int, Field(ge=2, le=100)] = DEFAULT_STEPS
    """Steps of the solver for each patch; time follows from it. With one, sound would be noise."""
    cfg_value: Annotated[float, Field(ge=0, le=10)] = 2.0
    """Guidance: how closely a patch follows the text and the voice."""
    max_new_tokens: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of patches, 160 ms each."""
