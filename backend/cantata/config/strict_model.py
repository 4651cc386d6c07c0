"""The base of all that is read from a deployment file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Unknown keys are errors, values are not coerced, instances are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
