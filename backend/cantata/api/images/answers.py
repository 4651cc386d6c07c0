"""Answers to POST /v1/images/generations and /v1/images/edits, whole and in pieces."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cantata.api.schemas import WireModel
from cantata.media.picture_files import PictureFormat

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
"""In which words the model planned the picture; absent if it did not. Not part of OpenAI's
protocol."""


class PromptTokens(WireModel):
    """What a prompt consists of."""

    text_tokens: int
    image_tokens: int
    """Of the pictures that came with it."""


class PictureUsage(WireModel):
    """What the pictures cost."""

    input_tokens: int
    """Of the prompt, once for all pictures."""
    input_tokens_details: PromptTokens
    output_tokens: int
    """Of the pictures: one for each smallest square of the model's sizes; and of the words in which
    they were planned."""
    total_tokens: int


class DrawnPicture(WireModel):
    """One picture."""

    b64_json: str
    """The file, base64."""
    seed: int
    """It was drawn with. Not part of OpenAI's protocol."""
    reasoning_content: Reasoning


class PictureFields(WireModel):
    """What all pictures of a request have in common."""

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
    """In the order of their seeds."""
    usage: PictureUsage


class PictureEvent(WireModel):
    """Server-sent event of one picture."""

    image_index: int
    """Which one, from 0. Not part of OpenAI's protocol."""
    created_at: int
    """Unix time."""


class PartialImage(PictureEvent, PictureFields):
    """Server-sent event: what a picture is expected to become."""

    type: PartialType
    b64_json: str
    """A file of the whole size, with less in it."""
    partial_image_index: int
    """Of this picture's, from 0."""


class CompletedImage(PictureEvent, PictureFields):
    """Server-sent event: a picture is done."""

    type: CompletedType
    b64_json: str
    seed: int
    """Not part of OpenAI's protocol."""
    reasoning_content: Reasoning
    usage: PictureUsage
    """Of this picture."""


class DrawingProgress(PictureEvent):
    """Server-sent event: a picture has come further. Not part of OpenAI's protocol; sent only with
    `stream_progress`."""

    type: ProgressType
    step: int
    """Steps done. Some may be passed over."""
    steps: int


class ThoughtDelta(PictureEvent):
    """Server-sent event: more of the words in which a model plans a picture. Not part of OpenAI's
    protocol; sent only if the model is asked to think."""

    type: ThoughtType
    delta: str
