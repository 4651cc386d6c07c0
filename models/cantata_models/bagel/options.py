"""A request's own options, by the names that the publisher's inferencer has for them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from cantata_models.bagel.sampling.guidance import Renorm

MAX_GUIDANCE = 20.0
MAX_SHIFT = 10.0
MAX_THOUGHT = 4096
Share = Annotated[float, Field(ge=0, le=1)]


class DrawOptions(BaseModel):
    """Beside what every model that draws takes. None: the publisher's value, which for a picture
    that is changed may be another."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    cfg_img_scale: Annotated[float, Field(ge=1, le=MAX_GUIDANCE)] | None = None
    """How much closer to the pictures that are changed; 1 is no such guidance."""
    cfg_interval: tuple[Share, Share] | None = None
    """Shares of noise between which there is guidance."""
    cfg_renorm_type: Renorm | None = None
    """Whose length a guided velocity keeps: the whole picture's, each token's, or each token's
    before the guidance by pictures."""
    cfg_renorm_min: Share = 0.0
    """The least factor by which it may be shortened."""
    timestep_shift: Annotated[float, Field(gt=0, le=MAX_SHIFT)] = 3.0
    """Above 1, more of the steps are spent on much noise."""
    think: bool = False
    """Whether the model plans the picture in words first."""
    max_think_token_n: Annotated[int, Field(ge=1, le=MAX_THOUGHT)] = 1000
    """Length of the plan, in tokens, at most."""
    text_temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Of the plan's words; 0 takes the likeliest."""

    @field_validator("cfg_interval")
    @classmethod
    def _ordered(cls, interval: tuple[float, float] | None) -> tuple[float, float] | None:
        if interval is not None and interval[0] > interval[1]:
            raise ValueError("must not end before it begins")
        return interval
