"""One picture that an edge has ordered: it is drawn, and its progress is sent."""

from __future__ import annotations

from cantata.contract.image_service import ImageModel
from cantata.distributed.link.stream import Stream
from cantata.distributed.messages import FrameKind
from cantata.distributed.picture_messages import DrawingBegun, DrawOrder, get_kind
from cantata.distributed.replica.messaging import send


async def draw(stream: Stream, order: DrawOrder, model: ImageModel) -> None:
    """Draw it; returns when no stage holds any part of it.

    Raises:
        CantataError: as of `ImageModel.run` and its drawings.
    """
    async with model.run(order.request) as drawing:
        started = DrawingBegun(
            drawing.request_id,
            drawing.width,
            drawing.height,
            drawing.steps,
            drawing.prompt_tokens,
            drawing.reference_tokens,
        )
        await send(stream, FrameKind.DRAWING, started)
        async for event in drawing:
            await send(stream, get_kind(event), event)
