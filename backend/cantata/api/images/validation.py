"""A client's request for pictures, checked against the limits of the model that is to draw them.

Nothing is loaded here.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from cantata.api.context import ApiContext
from cantata.api.images.answers import Kind, QualityName
from cantata.api.images.body import ImageOptions, PictureOptions, Quality
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.image_service import ImageModel
from cantata.media.images import BEST, PictureOutput, Pixels

AUTO = "auto"
_SIZE = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})")

_NAMES: dict[Quality, QualityName] = {
    "auto": "medium",
    "standard": "medium",
    "hd": "high",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_STEPS: dict[QualityName, Fraction] = {
    "low": Fraction(1, 2),
    "medium": Fraction(1),
    "high": Fraction(3, 2),
    "xhigh": Fraction(2),
    "max": Fraction(3),
}
"""Times the model's default."""


def get_size(asked: str, limits: ImageLimits) -> tuple[int, int] | None:
    """Width and height in pixels; None: the model chooses. Raises InvalidRequest: not a size, or
    none of the model's; says which are."""
    if asked == AUTO:
        return None
    found = _SIZE.fullmatch(asked)
    if found is not None:
        width, height = int(found[1]), int(found[2])
        if (
            not width % limits.multiple
            and not height % limits.multiple
            and min(width, height) >= limits.min_side
            and width * height <= limits.max_pixels
        ):
            return width, height
    raise InvalidRequest(f"size is {asked!r}; valid: {describe_sizes(limits)}", "size")


def describe_sizes(limits: ImageLimits) -> str:
    side = math.isqrt(limits.max_pixels)
    return (
        f"'{AUTO}', or WIDTHxHEIGHT in pixels, both multiples of {limits.multiple}, at least "
        f"{limits.min_side}, and together at most {limits.max_pixels} pixels (as {side}x{side})"
    )


def name_quality(asked: Quality) -> QualityName:
    return _NAMES[asked]


def get_steps(options: PictureOptions, limits: ImageLimits) -> int | None:
    """How many steps of denoising; None: the model's default. Raises InvalidRequest: more than the
    model takes."""
    asked = options.num_inference_steps
    if asked is None:
        share = _STEPS[name_quality(options.quality)]
        if share == 1:
            return None
        return min(limits.max_steps, max(1, math.ceil(limits.default_steps * share)))
    if asked > limits.max_steps:
        raise InvalidRequest(
            f"num_inference_steps is {asked}; valid: 1 to {limits.max_steps}", "num_inference_steps"
        )
    return asked


def get_guidance(options: PictureOptions, limits: ImageLimits) -> float | None:
    """How strong the guidance is; None: the model's default. Raises InvalidRequest: more than the
    model takes."""
    field = "guidance_scale" if options.true_cfg_scale is None else "true_cfg_scale"
    asked: float | None = getattr(options, field)
    if asked is not None and asked > limits.max_guidance:
        raise InvalidRequest(
            f"{field} is {asked:g}; valid: 1 (no guidance) to {limits.max_guidance:g}", field
        )
    return asked


def count_tokens(width: int, height: int, limits: ImageLimits) -> int:
    """Tokens of a picture in `usage`: squares whose side is the model's multiple."""
    return (width // limits.multiple) * (height // limits.multiple)


RANDOM_SEEDS = 2**32
"""Few enough for every client's numbers."""


@dataclass(frozen=True, slots=True)
class SentPicture:
    data: bytes
    param: str
    """The field that it came in."""


@dataclass(frozen=True, slots=True)
class ValidatedImage:
    """A checked request; its pictures are still files."""

    model: ImageModel
    options: ImageOptions
    sent: tuple[SentPicture, ...]
    """Empty: nothing is edited."""
    size: tuple[int, int] | None
    steps: int | None
    guidance: float | None
    seed: int
    """Seed of the first picture."""
    output: PictureOutput

    @property
    def kind(self) -> Kind:
        """The first part of its events' types."""
        return "image_edit" if self.sent else "image_generation"

    @property
    def quality(self) -> QualityName:
        return name_quality(self.options.quality)

    def requests(self, references: Sequence[Pixels], arrived_s: float) -> list[ImageRequest]:
        """One request to the model for each picture, with consecutive seeds.

        Args:
            references: the sent pictures, decoded.
            arrived_s: when the request came, by the monotonic clock.
        """
        options = self.options
        width, height = self.size or (None, None)
        deadline_s = None if options.deadline_s is None else arrived_s + options.deadline_s
        return [
            ImageRequest(
                options.prompt,
                tuple(references),
                width,
                height,
                self.seed + number,
                options.negative_prompt,
                self.steps,
                self.guidance,
                options.partial_images,
                deadline_s,
                options.priority == "batch",
                options.own_options(self.model.limits.options),
            )
            for number in range(options.n)
        ]


def check_image_body(
    context: ApiContext, options: ImageOptions, sent: Sequence[SentPicture] = ()
) -> ValidatedImage:
    """The checked request.

    Raises:
        InvalidRequest: a model that does not exist, and as of `check_picture_options`.
        Overloaded: every slot is taken.
    """
    if context.spare:
        options = options.model_copy(update={"priority": "batch"})
    validated = check_picture_options(
        context.get_image_model(options.model, edits=bool(sent)), options, sent
    )
    # Before files are decoded for nothing.
    validated.model.check_room()
    return validated


def check_picture_options(
    model: ImageModel, options: ImageOptions, sent: Sequence[SentPicture] = ()
) -> ValidatedImage:
    """A request of one model, checked. Raises InvalidRequest: the model does not do this, or an
    option is outside what it takes."""
    _check_pictures(model, sent)
    _check_stream(options)
    limits = model.limits
    return ValidatedImage(
        model,
        options,
        tuple(sent),
        get_size(options.size, limits),
        get_steps(options, limits),
        get_guidance(options, limits),
        secrets.randbelow(RANDOM_SEEDS) if options.seed is None else options.seed,
        get_output(options),
    )


def _check_pictures(model: ImageModel, sent: Sequence[SentPicture]) -> None:
    min_count, max_count = model.limits.min_references, model.limits.max_references
    if not sent and min_count:
        raise InvalidRequest(
            f"{model.name} only edits pictures: POST /v1/images/edits with {min_count} or more",
            "model",
        )
    if sent and not max_count:
        raise InvalidRequest(
            f"image: {model.name} draws from text only: POST /v1/images/generations", "image"
        )
    if sent and not min_count <= len(sent) <= max_count:
        raise InvalidRequest(
            f"image: {len(sent)} pictures; {model.name} takes {max(1, min_count)} to {max_count}",
            "image",
        )


def _check_stream(options: ImageOptions) -> None:
    for field in ("partial_images", "stream_progress"):
        if getattr(options, field) and not options.stream:
            raise InvalidRequest(f'{field} needs "stream": true', field)


def get_output(options: PictureOptions) -> PictureOutput:
    """How a picture is written. Raises InvalidRequest: png is to lose something."""
    quality = BEST if options.output_compression is None else options.output_compression
    if options.output_format == "png" and quality != BEST:
        raise InvalidRequest(
            f"output_compression is {quality}, but png is lossless; valid: {BEST}, or with "
            "output_format jpeg or webp 0 to 100",
            "output_compression",
        )
    return PictureOutput(options.output_format, quality)
