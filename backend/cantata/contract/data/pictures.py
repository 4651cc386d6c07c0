"""A caller's request for a picture, and what pictures a model makes.

Letters: H height, W width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.capabilities import OptionSchemas
from cantata.contract.data.chat import Role


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody showed and said before the prompt."""

    role: Role
    pictures: tuple[NDArray[np.uint8], ...]
    """[H, W, 3] RGB each, as `ImageRequest.references`; they come first."""
    text: str
    """May be empty if there are pictures."""


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """One picture, as the api validated it. Ranges are the api's; meaning is the plug-in's."""

    prompt: str
    references: tuple[NDArray[np.uint8], ...] = ()
    """[H, W, 3] RGB each, upright, decoded and limited by the api: pictures that the prompt is
    about. Empty: a picture is made from the prompt alone."""
    width: int | None = None
    """Pixels, as the next one. None: the model's own choice, which may follow the references."""
    height: int | None = None
    seed: int = 0
    """Same seed, same picture."""
    negative_prompt: str | None = None
    """What the picture shall not show. None: the plug-in's default."""
    steps: int | None = None
    """Of denoising. None: the plug-in's default, as the next one."""
    guidance: float | None = None
    """How much closer to the prompt than to the negative prompt; 1 is no guidance."""
    previews: int = 0
    """Pictures on the way that the caller wants to see, at most."""
    deadline_s: float | None = None
    """When its caller stops waiting, by `time.monotonic`; None: nobody knows."""
    batch: bool = False
    """Takes what other requests leave."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of `ImageLimits.options`, as the caller wrote them in JSON; the plug-in checks them."""
    earlier: tuple[Turn, ...] = ()
    """The conversation that the prompt and its references end; only for models with
    `ImageLimits.conversations`."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What pictures a checkpoint makes."""

    default_size: tuple[int, int]
    """Width and height in pixels, if neither the caller nor a reference says otherwise."""
    multiple: int
    """Width and height are multiples of this."""
    min_side: int
    """Pixels."""
    max_pixels: int
    """Width times height."""
    default_steps: int
    max_steps: int
    default_guidance: float
    max_guidance: float
    min_references: int = 0
    """Above 0: it only edits."""
    max_references: int = 0
    """0: it takes no pictures. Of a conversation: all of its pictures together."""
    negative_prompt: bool = True
    """Whether a request may say what the picture shall not show."""
    options: OptionSchemas = field(default_factory=dict)
    """Fields of its own that a request may have."""
    conversations: bool = False
    """Whether requests may have `earlier` turns: it draws what a conversation comes to."""
