"""The requests to a model, sentences as long as asked or small pictures, and how long they took."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Chunk, Image, Payload, Pcm, Progress
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.data.request import PipelineRequest, SpeechRequest
from cantata_bench.first_packet import TEXT, hear
from cantata_bench.images.client import draw_watched
from cantata_bench.images.reference import ReferenceJob


@dataclass(frozen=True, slots=True)
class Taken:
    """Times of one request, in seconds from its sending."""

    first_s: float
    """Seconds to the first packet of sound, or to the first step of a picture."""
    whole_s: float
    amount: float
    """Seconds of sound, or pictures."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """Several rounds of as many requests at once."""

    first_p50_s: float
    first_max_s: float
    whole_p50_s: float
    rtf_p50: float
    """Median over the requests: seconds per unit of the amount."""
    per_second: float
    """The amount of all requests of a round, in the median round."""
    refused: int = 0
    """Requests that there was no room for."""


class PageWork(Protocol):
    """One kind of request, the same each time. It is pickled."""

    async def ask(self, http: httpx.AsyncClient) -> Taken | None:
        """Send one to a server; None: it had no room.

        Raises:
            httpx.HTTPStatusError: it was rejected for another reason.
        """
        ...

    def built(self, located: LocatedModel, ids: Sequence[str]) -> list[PipelineRequest]:
        """The same request, built for bare stages."""
        ...

    def begins(self, payload: Payload) -> bool:
        """Whether this is the first that a caller sees, if nothing came before it."""
        ...

    def amount(self, chunk: Chunk[Payload], sample_rate: int) -> float:
        """How much of it a chunk for the client is."""
        ...


def collect_rounds(consumed: Sequence[Sequence[Taken | None]]) -> Rounds:
    """Rounds as one line of figures.

    Raises:
        RuntimeError: there was no room for any request of a round.
    """
    rounds = [[one for one in found if one is not None] for found in consumed]
    if not all(rounds):
        raise RuntimeError("there was no room for any of the requests")
    every = [one for found in rounds for one in found]
    return Rounds(
        first_p50_s=statistics.median(one.first_s for one in every),
        first_max_s=max(one.first_s for one in every),
        whole_p50_s=statistics.median(one.whole_s for one in every),
        rtf_p50=statistics.median(one.whole_s / one.amount for one in every),
        per_second=statistics.median(
            sum(one.amount for one in found) / max(one.whole_s for one in found) for found in rounds
        ),
        refused=sum(map(len, consumed)) - len(every),
    )


LIMIT = "max_new_tokens"
"""The option that ends speech which does not end by itself, as random weights do not."""


@dataclass(frozen=True, slots=True)
class SpeechWork:
    """Implements `model_page.work.PageWork`."""

    frames: int
    """Most frames, if the model has such an option."""

    async def ask(self, http: httpx.AsyncClient) -> Taken | None:
        """Send one; as `PageWork`."""
        received = await hear(http, self.frames)
        if received.first_s is None:
            return None
        return Taken(received.first_s, received.whole_s, received.audio_s)

    def built(self, located: LocatedModel, ids: Sequence[str]) -> list[PipelineRequest]:
        """As in `PageWork`."""
        builder = located.plugin.speech_builder(located.checkpoint)
        options: dict[str, Any] = {}
        if LIMIT in builder.capabilities.options:
            options[LIMIT] = self.frames + 1
        asked = SpeechRequest(TEXT, builder.voices[0].id, temperature=0.0, options=options)
        return [piece for name in ids for piece in builder.build(name, asked)]

    def begins(self, payload: Payload) -> bool:
        """Any sound."""
        return isinstance(payload, Pcm) and payload.units > 0

    def amount(self, chunk: Chunk[Payload], sample_rate: int) -> float:
        """Seconds of sound."""
        return chunk.payload.units / sample_rate if isinstance(chunk.payload, Pcm) else 0.0


PROMPT = "a red heart on a table"


@dataclass(frozen=True, slots=True)
class PictureWork:
    """Implements `model_page.work.PageWork`."""

    side: int
    """Pixels."""
    steps: int
    guidance: float

    async def ask(self, http: httpx.AsyncClient) -> Taken | None:
        """Send one; as `PageWork`."""
        order = ReferenceJob(PROMPT, self.side, self.side, self.steps, 0, self.guidance)
        try:
            watched = await draw_watched(http, order)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.TOO_MANY_REQUESTS:
                raise
            return None
        return Taken(watched.first_s, watched.whole_s, 1.0)

    def built(self, located: LocatedModel, ids: Sequence[str]) -> list[PipelineRequest]:
        """As in `PageWork`.

        Raises:
            ConfigError: the model does not draw.
        """
        if located.plugin.load_image_builder is None:
            raise ConfigError(f"model {located.plugin.name!r} does not draw")
        builder = located.plugin.load_image_builder(located.checkpoint)
        asked = ImageRequest(
            PROMPT, (), self.side, self.side, steps=self.steps, guidance=self.guidance
        )
        return [builder.build(name, asked).request for name in ids]

    def begins(self, payload: Payload) -> bool:
        """A step's progress, or the picture itself."""
        return isinstance(payload, Image) or (isinstance(payload, Progress) and payload.step > 0)

    def amount(self, chunk: Chunk[Payload], sample_rate: int) -> float:
        """A picture is one, its progress none."""
        return float(isinstance(chunk.payload, Image))


def pictures_within(limits: ImageLimits, side: int, steps: int) -> PictureWork:
    """Work with pictures of about this side and number of steps, as far as the model can draw
    them."""
    most = int(limits.max_pixels**0.5)
    fitted = max(limits.min_side, min(side, most)) // limits.multiple * limits.multiple
    return PictureWork(fitted, min(steps, limits.max_steps), limits.default_guidance)
