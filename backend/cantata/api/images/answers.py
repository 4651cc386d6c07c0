"""Answers to POST /v1/images/generations and /v1/images/edits, whole and in pieces."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cantata.api.schemas import WireModel
from cantata.media.images import PictureFormat

QualityName = Literal["low", "medium", "high", "xhigh", "max"]

Kind = Literal["image_generation", "image_edit"]
PartialType = Literal["image_generation.partial_image", "image_edit.partial_image"]
CompletedType = Literal["image_generation.completed", "image_edit.completed"]
ProgressType = Literal["image_generation.progress", "image_edit.progress"]
ThoughtType = Literal["image_generation.reasoning_text.delta", "image_edit.reasoning_text.delta"]

PARTIAL: dict[Kind, PartialType] = {
    "image_generation": "image_generation.partial_image",
    "image_edit": "image_edit.partial_image",
}
COMPLETED: dict[Kind, CompletedType] = {
    "image_generation": "image_generation.completed",
    "image_edit": "image_edit.completed",
}
PROGRESS: dict[Kind, ProgressType] = {
    "image_generation": "image_generation.progress",
    "image_edit": "image_edit.progress",
}


THOUGHT: dict[Kind, ThoughtType] = {
    "image_generation": "image_generation.reasoning_text.delta",
    "image_edit": "image_edit.reasoning_text.delta",
}

Reasoning = Annotated[str | None, Field(default=None, exclude_if=lambda text: text is None)]
"""The model's plan of the picture in words; absent if it made none. Not part of OpenAI's
protocol."""


class PromptTokens(WireModel):
    """The tokens of the prompt, by kind."""

    text_tokens: int
    image_tokens: int
    """Tokens of the pictures in the request."""


class PictureUsage(WireModel):
    """The tokens of one request."""

    input_tokens: int
    """Tokens of the prompt, counted once for all pictures."""
    input_tokens_details: PromptTokens
    output_tokens: int
    """Tokens of the pictures (one for each smallest square of the model's sizes) and of their plans
    in words."""
    total_tokens: int


class DrawnPicture(WireModel):
    """A picture that was drawn."""

    b64_json: str
    """The file, base64."""
    seed: int
    """The seed that it was drawn with. Not part of OpenAI's protocol."""
    reasoning_content: Reasoning


class PictureFields(WireModel):
    """Fields that are equal for all pictures of a request."""

    size: str
    """`WIDTHxHEIGHT` in pixels."""
    quality: QualityName
    background: Literal["opaque"] = "opaque"
    output_format: PictureFormat


class ImagesAnswer(PictureFields):
    """The whole answer."""

    created: int
    """Unix time."""
    data: list[DrawnPicture]
    """The pictures in the order of their seeds."""
    usage: PictureUsage


class PictureEvent(WireModel):
    """Server-sent event about one picture."""

    image_index: int
    """Index of the picture, from 0. Not part of OpenAI's protocol."""
    created_at: int
    """Unix time."""


class PartialImage(PictureEvent, PictureFields):
    """Server-sent event: a preview of a picture."""

    type: PartialType
    b64_json: str
    """A file of the full size, with less detail."""
    partial_image_index: int
    """Index of the preview, from 0."""


class CompletedImage(PictureEvent, PictureFields):
    """Server-sent event: a picture is done."""

    type: CompletedType
    b64_json: str
    seed: int
    """The seed that it was drawn with. Not part of OpenAI's protocol."""
    reasoning_content: Reasoning
    usage: PictureUsage
    """Tokens of this picture."""


class DrawingProgress(PictureEvent):
    """Server-sent event: a picture has advanced. Not part of OpenAI's protocol; sent only with
    `stream_progress`."""

    type: ProgressType
    step: int
    """Steps that are done. Events may skip some."""
    steps: int


class ThoughtDelta(PictureEvent):
    """Server-sent event: more of the words in which a model plans a picture. Not part of OpenAI's
    protocol; sent only if the model is asked to think."""

    type: ThoughtType
    delta: str
