"""The bodies of POST /v1/images/generations and /v1/images/edits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from cantata.api.neutral import only
from cantata.api.schemas import ModelOptions, Name, Seed, Text, WireModel
from cantata.media.picture_files import BEST, PictureFormat

MAX_PROMPT_CHARACTERS = 32_000
MAX_PICTURES = 10
MAX_PARTIAL_IMAGES = 3
MAX_DEADLINE_S = 86_400.0

Quality = Literal["auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"]
Prompt = Annotated[Text, Field(min_length=1, max_length=MAX_PROMPT_CHARACTERS)]
Guidance = Annotated[float, Field(ge=1, allow_inf_nan=False)]


class PictureOptions(ModelOptions):
    """How a picture is drawn. A model may have options of its own (`ImageLimits.options`)."""

    size: Annotated[Text, Field(max_length=32)] = "auto"
    """`auto` or `WIDTHxHEIGHT` in pixels, within the model's limits."""
    quality: Quality = "auto"
    """Chooses the steps, unless `num_inference_steps` does."""
    background: Annotated[str, only("auto", "opaque")] = "auto"
    output_format: PictureFormat = "png"
    output_compression: Annotated[int, Field(ge=0, le=BEST)] | None = None
    """Of `jpeg` and `webp`: 100 is the best and the largest."""
    negative_prompt: Annotated[Text, Field(max_length=MAX_PROMPT_CHARACTERS)] | None = None
    """Not part of OpenAI's protocol, as all that follow."""
    num_inference_steps: Annotated[int, Field(ge=1)] | None = None
    true_cfg_scale: Guidance | None = None
    """How much closer to the prompt than to the negative prompt; 1 is no guidance."""
    guidance_scale: Guidance | None = None
    """Another name of `true_cfg_scale`, which is read first."""
    deadline_s: Annotated[float, Field(gt=0, le=MAX_DEADLINE_S)] | None = None
    """Seconds that the caller waits."""
    priority: Literal["live", "batch"] = "live"
    """`batch` takes what other requests leave."""


class ImageOptions(PictureOptions):
    """What both routes take."""

    prompt: Prompt
    model: Name | None = None
    """Absent, or one of OpenAI's names: the server's first model that draws."""
    n: Annotated[int, Field(ge=1, le=MAX_PICTURES)] = 1
    response_format: Annotated[str, only("b64_json")] | None = None
    stream: bool = False
    partial_images: Annotated[int, Field(ge=0, le=MAX_PARTIAL_IMAGES)] = 0
    """Pictures on the way, at most; in a stream."""
    seed: Seed | None = None
    """Same seed, same picture; the second picture of a request is drawn with the next seed, and
    so on. Absent: a random one, which the answer tells. Not part of OpenAI's protocol, as the
    next one."""
    stream_progress: bool = False
    """Send an event for each step, too; in a stream."""


class Accepted(WireModel):
    """OpenAI's options that change nothing here. Clients send them routinely."""

    user: Text | None = None
    safety_identifier: Text | None = None
    moderation: Literal["auto", "low"] | None = None
    style: Literal["vivid", "natural"] | None = None
    complexity: Literal["low", "medium", "high"] | None = None


class GenerationBody(ImageOptions, Accepted):
    """POST /v1/images/generations."""


class EditBody(ImageOptions, Accepted):
    """The fields of POST /v1/images/edits beside its files."""

    input_fidelity: Literal["low", "high"] | None = None

    def own_options(self, names: Iterable[str]) -> dict[str, Any]:
        """A form has only text: a value is what it is as JSON, or else itself."""
        return {name: _read(text) for name, text in super().own_options(names).items()}


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
