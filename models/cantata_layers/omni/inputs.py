"""What a request builder gives the encoder and the thinker.

Letters: P tokens of the prompt, M of them of media.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions
from cantata_layers.omni.features import MediaFeatures


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """The media of a conversation."""

    media: tuple[MediaFeatures, ...]
    """In the order of the prompt; at least one."""


@dataclass(frozen=True, slots=True)
class ThinkerInput:
    """A conversation as tokens."""

    tokens: NDArray[np.int32]
    """[P]"""
    media: NDArray[np.int32]
    """[M]: where the encoders' rows belong, in their order."""
    positions: NDArray[np.float32] | None
    """[3, P]: rotary positions. None: they count on, on the only axis that there is."""
    identities: NDArray[np.int32]
    """[P]: the tokens, but for media numbers that tell different ones apart."""
    max_tokens: int | None
    """Of the answer; None: as many as there is room for."""
    exports_rows: bool
    """Whether the talker needs the thinker's hidden states."""
    sampling: SamplingOptions


def identify_rows(
    tokens: NDArray[np.int32], media: Iterable[tuple[MediaFeatures, NDArray[np.int32]]]
) -> NDArray[np.int32]:
    """[P] tokens -> [P]: the tokens; in the place of media, 31 bits of a stream that their content
    seeds.

    Args:
        media: each with the places of its rows.
    """
    identities = tokens.copy()
    for features, places in media:
        stream = hashlib.shake_256(features.identity).digest(4 * len(places))
        identities[places] = (np.frombuffer(stream, np.uint32) >> 1).astype(np.int32)
    return identities
