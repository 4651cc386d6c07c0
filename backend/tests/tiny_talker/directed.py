"""A tiny talker that takes directions and has options of its own: both change what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.request import PipelineRequest, SpeechRequest, Voice
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.request_options import field_schemas, parse_fields
from tiny_talker.checkpoint import TEXT_VOCAB, save_tiny_checkpoint
from tiny_talker.inputs import TinyInput
from tiny_talker.plugin import FRAMES_PER_WORD, TinyRequestBuilder, pipeline_with


class DirectedOptions(BaseModel):
    """Of its own."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    drawl: Annotated[int, Field(ge=0, le=20)] = 0
    """Frames that each word lasts longer."""
    mood: Literal["calm", "glad"] | None = None


class DirectedRequestBuilder(TinyRequestBuilder):
    """The directions and the voice come before the text."""

    voices = (Voice("low", "Low", "A low voice."), Voice("high", "High"))
    capabilities = Capabilities(
        instructions=True,
        languages=("en", "de"),
        paces=(0.5, 2.0),
        options=field_schemas(DirectedOptions),
    )
    warm_up = SpeechRequest("Hello.", "low")

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        options = parse_fields(request.options, DirectedOptions)
        asked = "".join(filter(None, (request.voice, request.instructions, options.mood)))
        pieces = super().build(request_id, request)
        return tuple(_directed(piece, asked, request.speed, options.drawl) for piece in pieces)


def _directed(piece: PipelineRequest, asked: str, speed: float, drawl: int) -> PipelineRequest:
    talker = piece.inputs["talker"]
    assert isinstance(talker, TinyInput)
    frames = round((FRAMES_PER_WORD + drawl) * talker.words / speed)
    directed = replace(
        talker,
        text=[*(ord(character) % TEXT_VOCAB for character in asked), *talker.text],
        max_frames=frames,
        min_frames=frames,
        words=0,
    )
    return PipelineRequest(piece.request_id, {"talker": directed})


PLUGIN = ModelPlugin(
    name="tiny-directed",
    model_types=("tiny_talker",),
    pipeline=pipeline_with("TinyTalker", "load_stereo_decoder"),
    deployment=Path(__file__).with_name("directed.yaml"),
    load_builder=lambda _: DirectedRequestBuilder(),
    write_random_checkpoint=save_tiny_checkpoint,
)
