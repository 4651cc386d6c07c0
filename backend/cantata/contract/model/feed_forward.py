"""What a feed-forward stage requires of a model: whole inputs in, whole outputs out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from cantata.contract.data.chunks import Payload
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
