"""One picture that an edge has ordered: it is drawn, and its progress is sent."""

from __future__ import annotations

from cantata.cluster.link.stream import Stream
from cantata.cluster.messages import Kind
from cantata.cluster.picture_messages import DrawingBegun, DrawOrder, kind_of
from cantata.cluster.replica.telling import tell
from cantata.contract.image_service import ImageModel


async def draw(stream: Stream, order: DrawOrder, model: ImageModel) -> None:
    """Draw it; returns when no stage holds any part of it.

    Raises:
        CantataError: as of `ImageModel.draw` and its drawings.
    """
    async with model.draw(order.request) as made:
        begun = DrawingBegun(
            made.request_id,
            made.width,
            made.height,
            made.steps,
            made.prompt_tokens,
            made.reference_tokens,
        )
        await tell(stream, Kind.DRAWING, begun)
        async for event in made:
            await tell(stream, kind_of(event), event)
