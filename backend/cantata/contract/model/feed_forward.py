"""What a feed-forward stage requires of a model: whole inputs in, whole outputs out, or sound part
by part."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, Pcm
from cantata.contract.data.errors import CantataError

FeedForwardOutput = Mapping[str, Payload]
"""One payload for each port of the stage; empty where the stage has nothing to send."""


class FeedForward(Protocol):
    """A function of each request's stage input, such as an encoder of recordings or of text.

    The stage batches calls, keeps results, and computes equal inputs once.
    """

    def key(self, inputs: Any) -> bytes | None:
        """Equal for inputs with equal outputs, and different for all others: a hash of everything
        that the output depends on. None: the output is neither kept nor shared."""
        ...

    def run(self, batch: Sequence[Any]) -> Sequence[FeedForwardOutput | CantataError]:
        """The output of each input, or why there is none.

        In float32 an output does not depend on the other inputs of its batch. If this raises, each
        input is run again by itself, and those that raise fail.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fed:
    """What `key` and `run` get instead of the stage input, if edges end at the stage."""

    inputs: Any
    """The stage input; None if the request has none."""
    arrived: Mapping[str, Payload]
    """The whole payloads of the ports in `awaits`, by port."""


@runtime_checkable
class FedFeedForward(Protocol):
    """A `FeedForward` whose stage has edges that end at it, such as a decoder of latents."""

    def awaits(self, inputs: Any) -> Collection[str]:
        """Ports of earlier stages whose payloads a request's output needs."""
        ...


@runtime_checkable
class Synthesizer(Protocol):
    """The model of a feed-forward stage whose port is sound, such as a voice in one ONNX file."""

    sample_rate: int
    """Hz."""
    channels: int

    def synthesize(self, inputs: Any) -> Iterable[Pcm]:
        """The sound of one request, part by part; each part leaves as soon as it is made.

        A generator is best: it runs only when its listener needs more, and is closed if the request
        is aborted. Parts of about a second, such as clauses, let listeners hear the beginning early
        and let others have their turn: while a part is computed, the stage does nothing else. In
        float32, a request's sound does not depend on other requests.

        Args:
            inputs: the stage input that the request builder made.

        Returns:
            Parts with [N, C] float32 samples in -1..1 and, if the model knows them, times of words,
            each no later than its sound.

        Raises:
            CantataError: the request cannot be spoken; anything else that is raised fails this
                request alone, too.
        """
        ...


@runtime_checkable
class ConcurrentSynthesizer(Synthesizer, Protocol):
    """A `Synthesizer` that may make parts of several requests at the same time.

    It is for a model that leaves cores idle while it makes one part.
    """

    is_concurrent: bool
    """Whether it does: as many parts as there are cores, each in a thread. The parts of one request
    are made one after the other, but not always in the same thread."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """When and how pictures are cut into tiles, in pixels."""

    above: int
    """Pictures with more pixels than this (height times width) are tiled."""
    size: int = 256
    """Side of a tile."""
    stride: int = 192
    """Distance from one tile to the next."""


def hash_pictures(pictures: Iterable[NDArray[np.uint8]], beside: str = "") -> bytes:
    """Hash of the pixels, [H, W, 3] each, and of what else a result depends on."""
    output = hashlib.sha256(beside.encode())
    for pixels in pictures:
        output.update(f"{pixels.shape}".encode())
        output.update(np.ascontiguousarray(pixels).tobytes())
    return output.digest()
