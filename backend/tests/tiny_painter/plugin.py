"""The tiny painter as a model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cantata.contract.data.chunks import Image, Progress, Rows
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.data.request import PipelineRequest, StageInput
from cantata.contract.model.picture import PlannedImage
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.request_options import field_schemas, parse_fields
from tiny_painter.inputs import CELL, TinyCanvas, TinyPrompt, TinyReferences, TinySize
from tiny_painter.stages import forward_size

FAULTS = re.compile(r"\b(UNREADABLE|UNWILLING|CRASH|FATAL|REFUSED|NAN)\b")
SLOW, SLOW_S = "SLOW", 0.05
"""A prompt with this word takes that much longer at each step."""

PAINTER = PipelineSpec(
    stages=(
        StageSpec(
            "text",
            StageKind.FEED_FORWARD,
            "tiny_painter.stages:load_text_encoder",
            outputs={"condition": Rows},
        ),
        StageSpec(
            "looking",
            StageKind.FEED_FORWARD,
            "tiny_painter.stages:load_reference_encoder",
            outputs={"references": Rows},
        ),
        StageSpec(
            "denoiser",
            StageKind.DIFFUSION,
            "tiny_painter.stages:load_denoiser",
            outputs={"progress": Progress},
        ),
        StageSpec(
            "decoder",
            StageKind.FEED_FORWARD,
            "tiny_painter.stages:load_decoder",
            outputs={"image": Image},
        ),
    ),
    edges=(
        EdgeSpec("text.condition", "denoiser"),
        EdgeSpec("looking.references", "denoiser"),
        EdgeSpec("denoiser.latents", "decoder"),
        EdgeSpec("denoiser.progress", CLIENT),
        EdgeSpec("decoder.image", CLIENT),
    ),
)


class TinyOptions(BaseModel):
    """Of its own."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    shade: Annotated[float, Field(ge=0, le=1)] = 0.0
    """How much darker the picture is; 1 is black."""
    ink: Literal["colour", "grey"] | None = None
    """Colours, or shades of grey."""
    mirrored: bool = False


LIMITS = ImageLimits(
    default_size=(64, 64),
    multiple=CELL,
    min_side=16,
    max_pixels=256 * 256,
    default_steps=4,
    max_steps=200,
    default_guidance=1.0,
    max_guidance=20.0,
    max_references=2,
    options=field_schemas(TinyOptions),
)

WARM_UP = (
    ImageRequest("warm", width=16, height=16, steps=4),
    ImageRequest("warm", width=64, height=64, steps=4),
)


@dataclass(frozen=True)
class TinyImageBuilder:
    """Implements `contract.model.picture.ImageBuilder`."""

    limits: ImageLimits = LIMITS
    note: str = "It paints everything in one colour."
    progress: str | None = "denoiser.progress"
    image: str = "decoder.image"
    warm_up: tuple[ImageRequest, ...] = WARM_UP

    def build(self, request_id: str, request: ImageRequest) -> PlannedImage:
        if "UNSPEAKABLE" in request.prompt:
            raise InvalidRequest("prompt: this word has no colour", "prompt")
        options = parse_fields(request.options, TinyOptions)
        width, height = request.width or 64, request.height or 64
        found = FAULTS.search(request.prompt)
        canvas = TinyCanvas(
            width,
            height,
            request.seed,
            steps=request.steps or self.limits.default_steps,
            previews=request.previews,
            guidance=request.guidance or 1.0,
            has_references=bool(request.references),
            fault=found.group() if found else "",
            step_s=SLOW_S if SLOW in request.prompt else 0.0,
        )
        inputs: dict[str, StageInput] = {
            "text": TinyPrompt(request.prompt),
            "denoiser": canvas,
            "decoder": TinySize(
                width, height, options.shade, options.ink or "colour", options.mirrored
            ),
        }
        if request.references:
            inputs["looking"] = TinyReferences(request.references)
        return PlannedImage(
            PipelineRequest(request_id, inputs),
            width,
            height,
            canvas.steps,
            forward_size(canvas),
            prompt_tokens=len(request.prompt),
            reference_tokens=len(request.references),
        )


def save_tiny_painter(folder: Path) -> None:
    """Write a checkpoint; its networks have no weights."""
    index = {"_class_name": "TinyPainterPipeline"}
    (folder / "model_index.json").write_text(json.dumps(index), encoding="utf-8")


PLUGIN = ModelPlugin(
    name="tiny-painter",
    model_types=("TinyPainterPipeline",),
    pipeline=PAINTER,
    deployment=Path(__file__).with_name("painter.yaml"),
    load_image_builder=lambda _: TinyImageBuilder(),
    write_random_checkpoint=save_tiny_painter,
)
