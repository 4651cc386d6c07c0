"""A client's request for a picture, and the pictures that a model can make.

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
    """A turn of the conversation before the prompt."""

    role: Role
    pictures: tuple[NDArray[np.uint8], ...]
    """[H, W, 3] RGB each, like `ImageRequest.references`; they come before the text."""
    text: str
    """May be empty if there are pictures."""


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """A request for one picture, as the api validated it. The api checks ranges; the plug-in gives
    the values their meaning."""

    prompt: str
    references: tuple[NDArray[np.uint8], ...] = ()
    """[H, W, 3] RGB each, upright, decoded and limited by the api: pictures that the prompt refers
    to. Empty: the picture is drawn from the prompt only."""
    width: int | None = None
    """Pixels, like `height`. None: the model chooses, maybe by the references."""
    height: int | None = None
    seed: int = 0
    """The same seed gives the same picture."""
    negative_prompt: str | None = None
    """What the picture should not show. None: the plug-in's default."""
    steps: int | None = None
    """Number of denoising steps. None: the plug-in's default, also for `guidance`."""
    guidance: float | None = None
    """How strongly to prefer the prompt to the negative prompt; 1 turns guidance off."""
    previews: int = 0
    """Most previews that the client wants."""
    deadline_s: float | None = None
    """When the client stops waiting, by `time.monotonic`. None: unknown."""
    batch: bool = False
    """Only use what other requests leave."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values of `ImageLimits.options`, in JSON as the client wrote them; the plug-in checks
    them."""
    earlier: tuple[Turn, ...] = ()
    """The conversation before the prompt and its references. Only for models with
    `ImageLimits.conversations`."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """The pictures that a checkpoint can make."""

    default_size: tuple[int, int]
    """Width and height in pixels, unless the client or a reference determines them."""
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
    """The least number of pictures to edit. Above 0: the model only edits."""
    max_references: int = 0
    """Most pictures to edit, in a conversation all of its pictures together. 0: it takes none."""
    negative_prompt: bool = True
    """Whether a request may have a negative prompt."""
    options: OptionSchemas = field(default_factory=dict)
    """Request fields of the model's own."""
    conversations: bool = False
    """Whether requests may have `earlier` turns: the model draws what a conversation asks for."""
