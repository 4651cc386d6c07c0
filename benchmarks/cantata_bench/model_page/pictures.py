"""A small picture in a few steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Chunk, Image, Payload, Progress
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.data.request import PipelineRequest
from cantata_bench.images.client import draw_watched
from cantata_bench.images.reference import ReferenceJob
from cantata_bench.model_page.work import Taken

PROMPT = "a red heart on a table"


@dataclass(frozen=True, slots=True)
class Pictures:
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


def pictures_within(limits: ImageLimits, side: int, steps: int) -> Pictures:
    """Work with pictures of about this side and number of steps, as far as the model can draw
    them."""
    most = int(limits.max_pixels**0.5)
    fitted = max(limits.min_side, min(side, most)) // limits.multiple * limits.multiple
    return Pictures(fitted, min(steps, limits.max_steps), limits.default_guidance)
