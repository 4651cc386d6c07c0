"""What a picture's stages leave for its caller: words of a thought, progress, the picture."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import cast

from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Chunk, Codes, Image, Progress
from cantata.contract.model.picture import ImageBuilder, ThinkingBuilder
from cantata.contract.model.pipeline import CLIENT, EdgeSpec
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.output_stream import OpenRequest
from cantata.utils.merge_streams import merge_streams


class DrawingOutputs:
    """Of one model.

    Args:
        orchestrator: of its pipeline.
        builder: names the ports.
    """

    def __init__(self, orchestrator: Orchestrator, builder: ImageBuilder) -> None:
        self._orchestrator = orchestrator
        self._image = EdgeSpec(builder.image, CLIENT)
        self._progress = None if builder.progress is None else EdgeSpec(builder.progress, CLIENT)
        self._thinking = builder if isinstance(builder, ThinkingBuilder) else None

    def before(self, opened: OpenRequest) -> AsyncGenerator[Thought | Progress, None]:
        """Everything before the picture, as it comes."""
        streams: list[AsyncGenerator[Thought | Progress, None]] = []
        if self._progress is not None:
            streams.append(self._steps(opened, self._progress))
        if self._thinking is not None:
            streams.append(self._thought(opened, self._thinking))
        return merge_streams(*streams)

    async def image(self, opened: OpenRequest) -> Image:
        """The picture."""
        return cast(
            Chunk[Image], await anext(self._orchestrator.output(opened, self._image))
        ).payload

    async def _steps(
        self, opened: OpenRequest, edge: EdgeSpec
    ) -> AsyncGenerator[Thought | Progress, None]:
        async for chunk in self._orchestrator.output(opened, edge):
            yield cast(Chunk[Progress], chunk).payload

    async def _thought(
        self, opened: OpenRequest, builder: ThinkingBuilder
    ) -> AsyncGenerator[Thought | Progress, None]:
        reader, edge = builder.reader(), EdgeSpec(builder.thought, CLIENT)
        async for chunk in self._orchestrator.output(opened, edge):
            tokens = cast(Chunk[Codes], chunk).payload.values[:, 0]
            text = reader.read(tokens) + (reader.end() if chunk.final else "")
            if len(tokens) or text:
                yield Thought(text, len(tokens))
