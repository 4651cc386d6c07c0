"""What a model that draws provides: prompts and pictures to stage inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.data.request import PipelineRequest
from cantata.contract.model.conversation import TextReader


@dataclass(frozen=True, slots=True)
class PlannedImage:
    """A request as the pipeline runs it."""

    request: PipelineRequest
    width: int
    """Pixels, as the next one."""
    height: int
    steps: int
    size: ForwardSize
    """Of each step's forward, so that admission can tell how long it takes."""
    prompt_tokens: int
    """Of the prompt's text."""
    reference_tokens: int = 0
    """Of the pictures in it."""


class ImageBuilder(Protocol):
    """Turns requests for pictures into stage inputs, in the api process.

    Light to load (no weights) and safe to call from a worker thread.
    """

    @property
    def limits(self) -> ImageLimits:
        """Of the checkpoint; the api has checked requests against them."""
        ...

    @property
    def note(self) -> str:
        """What users should know of the model beside its limits; may be empty."""
        ...

    @property
    def progress(self) -> str | None:
        """`stage.port` at which the progress leaves for the client; None: nowhere."""
        ...

    @property
    def image(self) -> str:
        """`stage.port` at which the picture leaves for the client."""
        ...

    @property
    def warm_up(self) -> tuple[ImageRequest, ...]:
        """Drawn and discarded before the model is ready: small and large, so that the cost of a
        forward is known from the start."""
        ...

    def build(self, request_id: str, request: ImageRequest) -> PlannedImage:
        """Stage inputs for one picture.

        Raises:
            InvalidRequest: the prompt, a picture or an option cannot be served.
        """
        ...


@runtime_checkable
class ThinkingBuilder(ImageBuilder, Protocol):
    """A builder whose model may plan a picture in words before it draws."""

    @property
    def thought(self) -> str:
        """`stage.port` at which the tokens of thoughts leave for the client, one code each. It ends
        for every picture, with or without a thought."""
        ...

    def reader(self) -> TextReader:
        """For one thought."""
        ...
