"""Request fields beyond OpenAI's, voice, recording and seed."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class RequestOptions(BaseModel):
    """Request fields specific to this model."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    sampler_decode_steps: Annotated[int, Field(ge=1, le=32)] = 1
    """Steps of the head for each frame. Only some checkpoints can take more than one."""
    noise_clamp: Annotated[float, Field(gt=0, le=100)] | None = None
    """No number of the noise may be further from 0 than this."""
    eos_threshold: Annotated[float, Field(ge=-1000, le=1000)] | None = None
    """Score above which a frame ends the text. Higher values make it go on for longer."""
    frames_after_eos: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Frames of 80 ms from the one that ends the text on. By default 3, or 5 after four words or
    fewer."""
    max_new_tokens: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of frames of each piece of the text, 80 ms each."""
