"""Checks of a request for pictures against the model's limits. Nothing is loaded here."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from cantata.api.images.answers import QualityName
from cantata.api.images.body import PictureOptions, Quality
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageLimits

AUTO = "auto"
_SIZE = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})")

_NAMES: dict[Quality, QualityName] = {
    "auto": "medium",
    "standard": "medium",
    "hd": "high",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_STEPS: dict[QualityName, Fraction] = {
    "low": Fraction(1, 2),
    "medium": Fraction(1),
    "high": Fraction(3, 2),
    "xhigh": Fraction(2),
    "max": Fraction(3),
}
"""Times the model's default."""


def get_size(asked: str, limits: ImageLimits) -> tuple[int, int] | None:
    """Width and height in pixels; None: the model chooses.

    Raises:
        InvalidRequest: not a size, or none of the model's; says which are.
    """
    if asked == AUTO:
        return None
    found = _SIZE.fullmatch(asked)
    if found is not None:
        width, height = int(found[1]), int(found[2])
        if (
            not width % limits.multiple
            and not height % limits.multiple
            and min(width, height) >= limits.min_side
            and width * height <= limits.max_pixels
        ):
            return width, height
    raise InvalidRequest(f"size is {asked!r}; valid: {sizes_shown(limits)}", "size")


def sizes_shown(limits: ImageLimits) -> str:
    """The sizes that a model makes, in words."""
    side = math.isqrt(limits.max_pixels)
    return (
        f"'{AUTO}', or WIDTHxHEIGHT in pixels, both multiples of {limits.multiple}, at least "
        f"{limits.min_side}, and together at most {limits.max_pixels} pixels (as {side}x{side})"
    )


def quality_name(asked: Quality) -> QualityName:
    """The quality's name in the answer."""
    return _NAMES[asked]


def get_steps(options: PictureOptions, limits: ImageLimits) -> int | None:
    """How many steps of denoising; None: the model's default.

    Raises:
        InvalidRequest: more than the model takes.
    """
    asked = options.num_inference_steps
    if asked is None:
        share = _STEPS[quality_name(options.quality)]
        if share == 1:
            return None
        return min(limits.max_steps, max(1, math.ceil(limits.default_steps * share)))
    if asked > limits.max_steps:
        raise InvalidRequest(
            f"num_inference_steps is {asked}; valid: 1 to {limits.max_steps}", "num_inference_steps"
        )
    return asked


def get_guidance(options: PictureOptions, limits: ImageLimits) -> float | None:
    """How strong the guidance is; None: the model's default.

    Raises:
        InvalidRequest: more than the model takes.
    """
    field = "guidance_scale" if options.true_cfg_scale is None else "true_cfg_scale"
    asked: float | None = getattr(options, field)
    if asked is not None and asked > limits.max_guidance:
        raise InvalidRequest(
            f"{field} is {asked:g}; valid: 1 (no guidance) to {limits.max_guidance:g}", field
        )
    return asked


def count_tokens(width: int, height: int, limits: ImageLimits) -> int:
    """Tokens of a picture in `usage`: squares whose side is the model's multiple."""
    return (width // limits.multiple) * (height // limits.multiple)
