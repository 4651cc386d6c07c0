"""Requests for pictures to stage inputs, in the api's process.

Letters: H height, W width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.data.request import PipelineRequest, StageInput
from cantata.contract.model.picture import PlannedImage
from cantata.contract.model.pipeline import PROGRESS
from cantata_layers.qwen_image.config import Family, load_config
from cantata_layers.qwen_image.defaults import drawing_defaults, lora_files
from cantata_layers.qwen_image.grid import POSITIONS, Grid, first_text_position
from cantata_layers.qwen_image.schedule import noise_shares
from cantata_layers.qwen_image.stages.pipeline import (
    DECODE,
    DENOISE,
    ENCODE,
    IMAGE,
    REFERENCES_STAGE,
    DecodeInput,
    DenoiseInput,
    EncodeInput,
    ReferenceInput,
    forward_size,
)
from cantata_layers.qwen_image.text.pictures import (
    EDIT_AREAS,
    EditAreas,
    Size,
    get_size,
    near_area,
    resized,
)
from cantata_layers.qwen_image.text.prompts import PicturePrompts

if TYPE_CHECKING:
    from cantata_layers.qwen_image.text.patches import PatchMaker

NOTHING = " "
"""The negative prompt unless a request has one, as the publisher recommends."""
NO_GUIDANCE = 1.0
MAX_STEPS, MAX_GUIDANCE = 200, 20.0
MAX_REFERENCES = 3
"""The model was trained with no more."""
WARM_STEPS = 2
DEFAULT_SIZE = Size(1328, 1328)
"""As published."""


@dataclass(frozen=True, slots=True)
class PictureOffer:
    """What a plug-in offers with its checkpoints; the values are those of the published ones."""

    size: Size = DEFAULT_SIZE
    """Of a picture, unless the request or a reference says otherwise."""
    min_side: int = 64
    """Pixels."""
    max_pixels: int = 2048 * 2048
    steps: int | None = None
    """Unless the request says otherwise, as the next. None: as the checkpoint was trained."""
    guidance: float | None = None
    note: str = ""
    """For users."""


PUBLISHED = PictureOffer()


class PictureBuilder:
    """Implements `contract.model.picture.ImageBuilder`.

    Raises:
        ConfigError: the checkpoint's configuration is not served.
    """

    progress = f"{DENOISE}.{PROGRESS}"
    image = f"{DECODE}.{IMAGE}"

    def __init__(
        self,
        checkpoint: Path,
        offer: PictureOffer = PUBLISHED,
        areas: Mapping[Family, EditAreas] = EDIT_AREAS,
    ) -> None:
        self._config = load_config(checkpoint)
        self._family, self._areas = self._config.family, areas
        trained = drawing_defaults(self._config.schedule, lora_files(checkpoint))
        self._schedule = trained.schedule
        self._steps = offer.steps or trained.steps
        self._default_guidance = trained.guidance if offer.guidance is None else offer.guidance
        self._prompts = PicturePrompts(checkpoint, self._family)
        self._pictures = _build_patch_maker(checkpoint) if self._family.takes_pictures else None
        self._offer, self.note = offer, offer.note

    @property
    def limits(self) -> ImageLimits:
        edits, several = self._family.takes_pictures, self._family is Family.EDIT_PLUS
        offer = self._offer
        return ImageLimits(
            default_size=(offer.size.width, offer.size.height),
            multiple=self._config.pixels_per_token,
            min_side=offer.min_side,
            max_pixels=offer.max_pixels,
            default_steps=self._steps,
            max_steps=MAX_STEPS,
            default_guidance=self._default_guidance,
            max_guidance=MAX_GUIDANCE,
            min_references=int(edits),
            max_references=(MAX_REFERENCES if several else 1) if edits else 0,
        )

    @property
    def warm_up(self) -> tuple[ImageRequest, ...]:
        """A small picture, and one with half the default sides; a step of either has one row."""
        limits, side = self.limits, self.limits.min_side
        width, height = (
            max(pixels // 2 // limits.multiple * limits.multiple, side)
            for pixels in limits.default_size
        )
        blank = np.full((side, side, 3), 128, np.uint8)
        references = (blank,) if limits.min_references else ()
        return tuple(
            ImageRequest("a", references, *size, steps=WARM_STEPS, guidance=NO_GUIDANCE)
            for size in ((side, side), (width, height))
        )

    def build(self, request_id: str, request: ImageRequest) -> PlannedImage:
        """Stage inputs for one picture. Raises InvalidRequest: references are missing, too many or
        too narrow, or the size is not served."""
        self._check(request)
        kept = [self._kept(pixels) for pixels in request.references]
        size = self._choose_size(request, kept)
        unit = self._config.pixels_per_token
        grid = Grid(size.height // unit, size.width // unit)
        encode = self._encode_input(request)
        denoise = self._denoise_input(request, grid, kept)
        inputs: dict[str, StageInput] = {
            ENCODE: encode,
            DENOISE: denoise,
            DECODE: DecodeInput((grid.height, grid.width)),
        }
        if kept:
            inputs[REFERENCES_STAGE] = ReferenceInput(tuple(kept))
        references = [Grid(*reference) for reference in denoise.references]
        texts = [tokens for tokens in (encode.prompt, encode.negative) if tokens is not None]
        lengths = [len(tokens) - self._prompts.dropped for tokens in texts]
        _check_positions(max(lengths), [grid, *references])
        pictures = sum(reference.tokens for reference in references)
        return PlannedImage(
            PipelineRequest(request_id, inputs),
            size.width,
            size.height,
            len(denoise.shares) - 1,
            forward_size(lengths, grid.tokens + pictures),
            prompt_tokens=lengths[0],
            reference_tokens=pictures,
        )

    def _check(self, request: ImageRequest) -> None:
        limits, count = self.limits, len(request.references)
        if not limits.min_references <= count <= limits.max_references:
            raise InvalidRequest(
                f"image: {count} pictures; this model takes {limits.min_references} to "
                f"{limits.max_references}",
                "image",
            )

    def _kept(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A reference as the denoiser keeps it."""
        return resized(pixels, near_area(self._areas[self._family].kept, get_size(pixels)))

    def _seen(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A reference as the text encoder sees it."""
        return resized(pixels, near_area(self._areas[self._family].seen, get_size(pixels)))

    def _choose_size(self, request: ImageRequest, kept: Sequence[NDArray[np.uint8]]) -> Size:
        """What was asked for, or the last reference's, or the default."""
        given = get_size(kept[-1]) if kept else self._offer.size
        width, height = request.width or given.width, request.height or given.height
        unit, limits = self._config.pixels_per_token, self.limits
        if width % unit or height % unit or min(width, height) < unit:
            raise InvalidRequest(
                f"size: {width}x{height}; valid: multiples of {unit} pixels", "size"
            )
        if width * height > limits.max_pixels:
            raise InvalidRequest(
                f"size: {width}x{height}; valid: at most {limits.max_pixels} pixels in all", "size"
            )
        return Size(width, height)

    def _encode_input(self, request: ImageRequest) -> EncodeInput:
        pictures = tuple(self._seen(pixels) for pixels in request.references)
        maker = self._pictures
        sizes = [maker.tokens(get_size(pixels)) for pixels in pictures] if maker else []
        negative = NOTHING if request.negative_prompt is None else request.negative_prompt
        return EncodeInput(
            self._prompts.tokens(request.prompt, sizes),
            self._prompts.tokens(negative, sizes) if self._choose_guidance(request) > 1 else None,
            pictures,
        )

    def _denoise_input(
        self, request: ImageRequest, grid: Grid, kept: Sequence[NDArray[np.uint8]]
    ) -> DenoiseInput:
        unit = self._config.pixels_per_token
        steps = request.steps or self._steps
        return DenoiseInput(
            seed=request.seed,
            grid=(grid.height, grid.width),
            shares=noise_shares(self._schedule, steps, grid.tokens),
            guidance=self._choose_guidance(request),
            references=tuple((p.shape[0] // unit, p.shape[1] // unit) for p in kept),
            previews=request.previews,
        )

    def _choose_guidance(self, request: ImageRequest) -> float:
        """The scale of guidance. As in the reference, values up to 1 mean none."""
        asked = self._default_guidance if request.guidance is None else request.guidance
        return max(asked, NO_GUIDANCE)


def _check_positions(text: int, grids: Sequence[Grid]) -> None:
    if text > (max_tokens := POSITIONS - first_text_position(grids)):
        raise InvalidRequest(
            f"prompt: {text} tokens with its pictures; valid: at most {max_tokens}", "prompt"
        )


def _build_patch_maker(checkpoint: Path) -> PatchMaker:
    # WHY here: transformers is slow to import, and a model that only draws needs none of it.
    from cantata_layers.qwen_image.text.patches import PatchMaker

    return PatchMaker(checkpoint)
