"""Requests for pictures to stage inputs, in the api's process.

A request's own options have the names that the publisher's inferencer has for them.

Letters: H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.data.request import PipelineRequest, StageInput
from cantata.contract.model.picture import PlannedImage
from cantata.contract.model.pipeline import CODES, PROGRESS
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.text.pictures import Size, get_size
from cantata_layers.request_options import field_schemas, parse_fields
from cantata_models.bagel.config import MARKS, PIXELS_PER_TOKEN, load_config
from cantata_models.bagel.inputs import (
    BagelDecodeInput,
    BagelReferenceInput,
    ContextPart,
    DrawInput,
    Guidance,
    ReferenceGrids,
    Renorm,
    ThoughtInput,
    VisionInput,
)
from cantata_models.bagel.pictures import PUBLISHED, PictureSizes, fitted
from cantata_models.bagel.plugin import DECODE, DENOISE, IMAGE, REFERENCES_STAGE, SEE
from cantata_models.bagel.prompt import (
    BagelTokenizer,
    build_context,
    picture_tokens,
    pieces,
    positions,
    shown,
    text_tokens,
    with_thinking,
)
from cantata_models.bagel.reader import latent_side
from cantata_models.bagel.thought_text import BagelThoughtReader

MAX_GUIDANCE = 20.0
MAX_SHIFT = 10.0
MAX_THOUGHT = 4096
Share = Annotated[float, Field(ge=0, le=1)]


class DrawOptions(BaseModel):
    """Beside what every model that draws takes. None: the publisher's value, which for a picture
    that is changed may be another."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    cfg_img_scale: Annotated[float, Field(ge=1, le=MAX_GUIDANCE)] | None = None
    """How much closer to the pictures that are changed; 1 is no such guidance."""
    cfg_interval: tuple[Share, Share] | None = None
    """Shares of noise between which there is guidance."""
    cfg_renorm_type: Renorm | None = None
    """Whose length a guided velocity keeps: the whole picture's, each token's, or each token's
    before the guidance by pictures."""
    cfg_renorm_min: Share = 0.0
    """The least factor by which it may be shortened."""
    timestep_shift: Annotated[float, Field(gt=0, le=MAX_SHIFT)] = 3.0
    """Above 1, more of the steps are spent on much noise."""
    think: bool = False
    """Whether the model plans the picture in words first."""
    max_think_token_n: Annotated[int, Field(ge=1, le=MAX_THOUGHT)] = 1000
    """Length of the plan, in tokens, at most."""
    text_temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Of the plan's words; 0 takes the likeliest."""

    @field_validator("cfg_interval")
    @classmethod
    def _ordered(cls, interval: tuple[float, float] | None) -> tuple[float, float] | None:
        if interval is not None and interval[0] > interval[1]:
            raise ValueError("must not end before it begins")
        return interval


def noise_times(steps: int, shift: float) -> tuple[float, ...]:
    """The shares of noise before each step, and 0 after the last.

    The reference counts points in time: its 50 are 49 steps here.

    Args:
        steps: at least 1.
        shift: above 1, more of the steps are spent on much noise.
    """
    times = torch.linspace(1, 0, steps + 1)
    # In float32, as the reference: what lies inside an interval depends on it.
    return tuple((shift * times / (1 + (shift - 1) * times)).tolist())


STEPS, MAX_STEPS, WARM_STEPS = 49, 200, 2
"""The publisher's 50 points in time are 49 steps."""
GUIDANCE, NO_GUIDANCE = 4.0, 1.0
DRAWN = Guidance(GUIDANCE, 1.5, (0.4, 1.0), Renorm.GLOBAL)
CHANGED = Guidance(GUIDANCE, 2.0, (0.0, 1.0), Renorm.TEXT_CHANNEL)
"""As the publisher's app draws from words alone, and as it changes pictures."""
MAX_REFERENCES = 8
"""The publisher's app takes one; in a conversation, each answer brings another."""
MIN_SIDE = 64
"""Pixels."""
NOTE = "Draws from words, changes pictures, and with `think` plans a picture in words first."


class BagelPictureBuilder:
    """Implements `contract.model.picture.ThinkingBuilder`.

    Raises:
        ConfigError: the checkpoint's configuration is not served.
    """

    progress = f"{DENOISE}.{PROGRESS}"
    image = f"{DECODE}.{IMAGE}"
    thought = f"{DENOISE}.{CODES}"
    note = NOTE

    def __init__(self, checkpoint: Path, sizes: PictureSizes = PUBLISHED) -> None:
        self._positions = load_config(checkpoint).language.positions
        self._longest = latent_side(checkpoint) * PIXELS_PER_TOKEN
        self._texts, self._sizes = BagelTokenizer(checkpoint), sizes

    @property
    def limits(self) -> ImageLimits:
        return ImageLimits(
            default_size=(self._longest, self._longest),
            multiple=PIXELS_PER_TOKEN,
            min_side=MIN_SIDE,
            max_pixels=self._longest**2,
            default_steps=STEPS,
            max_steps=MAX_STEPS,
            default_guidance=GUIDANCE,
            max_guidance=MAX_GUIDANCE,
            max_references=MAX_REFERENCES,
            negative_prompt=False,
            options=field_schemas(DrawOptions),
            conversations=True,
        )

    @property
    def warm_up(self) -> tuple[ImageRequest, ...]:
        """A small picture, and one of half the default sides."""
        half = self._longest // 2 // PIXELS_PER_TOKEN * PIXELS_PER_TOKEN
        return tuple(
            ImageRequest("a", (), side, side, steps=WARM_STEPS, guidance=NO_GUIDANCE)
            for side in (MIN_SIDE, max(half, MIN_SIDE))
        )

    def reader(self) -> BagelThoughtReader:
        return BagelThoughtReader(self._texts.tokenizer)

    def build(self, request_id: str, request: ImageRequest) -> PlannedImage:
        """Stage inputs for one picture. Raises InvalidRequest: an option, the size or a picture is
        not served."""
        options = parse_fields(request.options, DrawOptions)
        pictures = shown(request)
        _check(request, len(pictures))
        kept = [fitted(pixels, self._sizes.kept) for pixels in pictures]
        size = self._choose_size(request, kept)
        # The reference resizes once more what it resized, which may change narrow pictures.
        encoded = [fitted(pixels, self._sizes.kept) for pixels in kept]
        seen = [fitted(pixels, self._sizes.seen) for pixels in kept]
        grid = Grid(size.height // PIXELS_PER_TOKEN, size.width // PIXELS_PER_TOKEN)
        references = [
            self._build_grids(own, sight) for own, sight in zip(encoded, seen, strict=True)
        ]
        parts = self._list_parts(request, references)
        draw = self._draw_input(request, options, grid, parts)
        inputs: dict[str, StageInput] = {
            DENOISE: draw,
            DECODE: BagelDecodeInput((grid.height, grid.width)),
        }
        if kept:
            inputs[REFERENCES_STAGE] = BagelReferenceInput(tuple(encoded), request.seed)
            inputs[SEE] = VisionInput(tuple(seen))
        return PlannedImage(
            PipelineRequest(request_id, inputs),
            size.width,
            size.height,
            _count_steps(draw),
            _forward_size(draw, grid),
            prompt_tokens=text_tokens(parts),
            reference_tokens=picture_tokens(parts),
        )

    def _choose_size(self, request: ImageRequest, kept: Sequence[NDArray[np.uint8]]) -> Size:
        """What was asked for, or the last picture's, or the default."""
        given = get_size(kept[-1]) if kept else Size(self._longest, self._longest)
        width, height = request.width or given.width, request.height or given.height
        unit = PIXELS_PER_TOKEN
        if width % unit or height % unit or not unit <= max(width, height) <= self._longest:
            raise InvalidRequest(
                f"size: {width}x{height}; valid: multiples of {unit} pixels, up to "
                f"{self._longest} on a side",
                "size",
            )
        return Size(width, height)

    def _build_grids(self, encoded: NDArray[np.uint8], seen: NDArray[np.uint8]) -> ReferenceGrids:
        kept, sight = self._sizes.kept.grid(encoded), self._sizes.seen.grid(seen)
        return ReferenceGrids((kept.height, kept.width), (sight.height, sight.width))

    def _list_parts(
        self, request: ImageRequest, references: Sequence[ReferenceGrids]
    ) -> tuple[ContextPart, ...]:
        parts = build_context(request, self._texts, references)
        if (used := positions(parts)) > self._positions:
            field = "messages" if request.earlier else "prompt"
            raise InvalidRequest(f"{field}: {used} tokens; valid: at most {self._positions}", field)
        return parts

    def _draw_input(
        self,
        request: ImageRequest,
        options: DrawOptions,
        grid: Grid,
        parts: tuple[ContextPart, ...],
    ) -> DrawInput:
        thought = ThoughtInput(options.max_think_token_n, options.text_temperature)
        return DrawInput(
            seed=request.seed,
            parts=with_thinking(parts, self._texts) if options.think else parts,
            grid=(grid.height, grid.width),
            times=noise_times(request.steps or STEPS, options.timestep_shift),
            guidance=_choose_guidance(request, options),
            thought=thought if options.think else None,
            previews=request.previews,
        )


def _check(request: ImageRequest, pictures: int) -> None:
    if pictures > MAX_REFERENCES:
        field = "messages" if request.earlier else "image"
        raise InvalidRequest(f"{field}: {pictures} pictures; valid: up to {MAX_REFERENCES}", field)
    if request.negative_prompt is not None:
        raise InvalidRequest(
            "negative_prompt: this model has none; it is guided away from no prompt at all",
            "negative_prompt",
        )


def _choose_guidance(request: ImageRequest, options: DrawOptions) -> Guidance:
    usual = CHANGED if shown(request) else DRAWN
    return Guidance(
        text=usual.text if request.guidance is None else request.guidance,
        image=usual.image if options.cfg_img_scale is None else options.cfg_img_scale,
        interval=usual.interval if options.cfg_interval is None else options.cfg_interval,
        renorm=usual.renorm if options.cfg_renorm_type is None else options.cfg_renorm_type,
        min_scale=options.cfg_renorm_min,
    )


def _count_steps(draw: DrawInput) -> int:
    thought = 0 if draw.thought is None else draw.thought.max_tokens + 1
    return pieces(draw.parts) + thought + len(draw.times) - 1


def _forward_size(draw: DrawInput, grid: Grid) -> ForwardSize:
    """The size of the largest step of drawing."""
    own, words = grid.tokens + MARKS, text_tokens(draw.parts)
    pictures, prompt = picture_tokens(draw.parts), text_tokens(draw.parts[-1:])
    seen = [own + words + pictures]
    if draw.guidance.text > NO_GUIDANCE:
        seen.append(own + words - prompt + pictures)
        if draw.references and draw.guidance.image > NO_GUIDANCE:
            seen.append(own + words)
    return ForwardSize(own * len(seen), own * sum(seen))
