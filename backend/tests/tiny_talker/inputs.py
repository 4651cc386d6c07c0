"""What the tiny talker is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions


@dataclass(frozen=True, slots=True)
class TinyInput:
    """A text, and how to say it."""

    text: Sequence[int] = ()
    """Ids."""
    max_frames: int = 0
    min_frames: int = 0
    track: bool = False
    """The text goes on beside the frames, one id each, instead of being prefilled."""
    open: bool = False
    """More text follows."""
    follows: bool = False
    """An encoder's rows come before the text's."""
    words: int = 0
    """So many, equally long."""
    context: Sequence[Sequence[int]] | None = None
    """Frames that it continues."""
    sampling: SamplingOptions = field(default_factory=SamplingOptions)


@dataclass(frozen=True, slots=True)
class TinySound:
    """What the encoder is given."""

    samples: NDArray[np.float32]
    """[N]"""


@dataclass(frozen=True, slots=True)
class TinyText:
    """Text that follows."""

    text: Sequence[int]


@dataclass(frozen=True, slots=True)
class TinyConversation:
    """What the thinker is given."""

    tokens: Sequence[int]
    max_frames: int = 12
    min_frames: int = 12
    heard: int = 0
    """Rows of an encoder that come before the tokens."""
    positions: Sequence[Sequence[int]] | None = None
    """[3, L]"""
    added: Mapping[int, Sequence[float]] = field(default_factory=dict)
    """Place -> [D] what the first layer adds there."""
    exports_rows: bool = True
    sampling: SamplingOptions = field(default_factory=SamplingOptions)
