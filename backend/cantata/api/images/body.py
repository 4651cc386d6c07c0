"""The bodies of POST /v1/images/generations and /v1/images/edits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from cantata.api.compat_fields import accepts_only
from cantata.api.schemas import ModelOptions, Name, Seed, Text, WireModel
from cantata.media.images import BEST, PictureFormat

MAX_PROMPT_CHARACTERS = 32_000
MAX_PICTURES = 10
MAX_PARTIAL_IMAGES = 3
MAX_DEADLINE_S = 86_400.0

Quality = Literal["auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"]
Prompt = Annotated[Text, Field(min_length=1, max_length=MAX_PROMPT_CHARACTERS)]
Guidance = Annotated[float, Field(ge=1, allow_inf_nan=False)]


def _spell_out(sent: object) -> object:
    """`jpg` means `jpeg`, and capitals mean nothing: names of files have both."""
    if not isinstance(sent, str):
        return sent
    name = sent.lower()
    return "jpeg" if name == "jpg" else name


class PictureOptions(ModelOptions):
    """How a picture is drawn. A model may have options of its own (`ImageLimits.options`)."""

    size: Annotated[Text, Field(max_length=32)] = "auto"
    """`auto`, or `WIDTHxHEIGHT` in pixels within the model's limits."""
    quality: Quality = "auto"
    """Chooses the number of steps, unless `num_inference_steps` is set."""
    background: Annotated[str, accepts_only("auto", "opaque")] = "auto"
    output_format: Annotated[PictureFormat, BeforeValidator(_spell_out)] = "png"
    output_compression: Annotated[int, Field(ge=0, le=BEST)] | None = None
    """Quality of `jpeg` and `webp`; 100 is the best and the largest."""
    negative_prompt: Annotated[Text, Field(max_length=MAX_PROMPT_CHARACTERS)] | None = None
    """What the picture should not show. Not part of OpenAI's protocol, nor are the fields that
    follow."""
    num_inference_steps: Annotated[int, Field(ge=1)] | None = None
    true_cfg_scale: Guidance | None = None
    """How strongly to prefer the prompt to the negative prompt; 1 turns guidance off."""
    guidance_scale: Guidance | None = None
    """Another name of `true_cfg_scale`, which takes precedence."""
    deadline_s: Annotated[float, Field(gt=0, le=MAX_DEADLINE_S)] | None = None
    """How many seconds the client waits at most."""
    priority: Literal["live", "batch"] = "live"
    """`batch` uses what live requests leave."""


class ImageOptions(PictureOptions):
    """Options of both routes."""

    prompt: Prompt
    model: Name | None = None
    """Absent, or one of OpenAI's names: the server's first model that draws."""
    n: Annotated[int, Field(ge=1, le=MAX_PICTURES)] = 1
    response_format: Annotated[str, accepts_only("b64_json")] | None = None
    stream: bool = False
    partial_images: Annotated[int, Field(ge=0, le=MAX_PARTIAL_IMAGES)] = 0
    """Most previews of each picture, in a stream."""
    seed: Seed | None = None
    """The same seed gives the same picture. The second picture of a request has the next seed, and
    so on. Absent: a random one, which the answer contains. Not part of OpenAI's protocol, nor is
    `stream_progress`."""
    stream_progress: bool = False
    """In a stream, send an event for each step."""


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
