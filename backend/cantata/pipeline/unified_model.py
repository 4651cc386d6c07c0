"""One served model that answers and draws: both over one pipeline, whose stages it starts once."""

from __future__ import annotations

from collections.abc import Mapping

from cantata.contract.model.conversation import AnyChatBuilder
from cantata.contract.model.picture import ImageBuilder
from cantata.pipeline.chat_admission import ChatStepAdmission
from cantata.pipeline.chat_model import PipelineChatModel
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.stepped_pipeline import SteppedPipeline


class UnifiedModel:
    """Has a `ChatModel` and an `ImageModel` of the same name.

    Args:
        answering: the builder of conversations.
        drawing: the builder of pictures.
        pipeline: of both.
        voice_aliases: more names of its voices.
    """

    def __init__(
        self,
        answering: AnyChatBuilder,
        drawing: ImageBuilder,
        pipeline: SteppedPipeline,
        voice_aliases: Mapping[str, str],
    ) -> None:
        self.name = pipeline.name
        self.orchestrator = pipeline.orchestrator
        self.chat = PipelineChatModel(answering, ChatStepAdmission(pipeline), voice_aliases)
        self.images = PipelineImageModel(drawing, pipeline)
        self._pipeline = pipeline

    async def start(self) -> None:
        """Start the pipeline; draw and answer what measures its steps."""
        await self._pipeline.start(self._warm_up)

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        await self._pipeline.stop(deadline_s)

    async def _warm_up(self) -> None:
        await self.images.warm_up()
        await self.chat.warm_up()
