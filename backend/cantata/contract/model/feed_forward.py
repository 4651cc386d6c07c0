"""What a feed-forward stage requires of a model: whole inputs in, whole outputs out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from cantata.contract.data.chunks import Payload
from cantata.contract.data.errors import CantataError

FeedForwardOutput = Mapping[str, Payload]
"""One payload for each port of the stage. Where there is nothing to say, it is empty."""


class FeedForward(Protocol):
    """A function of each request's stage input, such as an encoder of recordings or of text.

    The stage batches calls, keeps results, and computes equal inputs once.
    """

    def key(self, inputs: Any) -> bytes | None:
        """Equal for inputs with equal outputs, different for all others: a hash of whatever the
        output depends on. None: the output is not kept and not shared."""
        ...

    def run(self, batch: Sequence[Any]) -> Sequence[FeedForwardOutput | CantataError]:
        """The output of each input, or why it has none.

        In float32 an output does not depend on the other inputs of its batch. If this raises, each
        input is run again by itself, and those that raise fail.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fed:
    """What `key` and `run` get in the place of the stage input, if edges end at the stage."""

    inputs: Any
    """The stage input; None if the request has none."""
    arrived: Mapping[str, Payload]
    """What `awaits` named, by port, each payload whole."""


@runtime_checkable
class FedFeedForward(Protocol):
    """What a `FeedForward` has beside that if edges end at its stage, such as a decoder of
    latents."""

    def awaits(self, inputs: Any) -> Collection[str]:
        """Ports of earlier stages without whose payloads a request's output cannot be computed."""
        ...
