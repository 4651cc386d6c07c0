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
    """A request for a picture as the pipeline runs it."""

    request: PipelineRequest
    width: int
    """Pixels, like `height`."""
    height: int
    steps: int
    size: ForwardSize
    """Size of each step's forward, from which admission computes how long it takes."""
    prompt_tokens: int
    """Tokens of the prompt's text."""
    reference_tokens: int = 0
    """Tokens of the pictures in the request."""


class ImageBuilder(Protocol):
    """Turns requests for pictures into stage inputs, in the api process.

    Light to load (no weights) and safe to call from a worker thread.
    """

    @property
    def limits(self) -> ImageLimits:
        """The checkpoint's limits; the api has checked requests against them."""
        ...

    @property
    def note(self) -> str:
        """A note for users of the model, in addition to its limits; may be empty."""
        ...

    @property
    def progress(self) -> str | None:
        """The `stage.port` from which progress goes to the client. None: there is no progress."""
        ...

    @property
    def image(self) -> str:
        """The `stage.port` from which the picture goes to the client."""
        ...

    @property
    def warm_up(self) -> tuple[ImageRequest, ...]:
        """Pictures that are drawn and discarded before the model is ready: small and large ones, so
        that the cost of a forward is known from the start."""
        ...

    def build(self, request_id: str, request: ImageRequest) -> PlannedImage:
        """Stage inputs for one picture. Raises InvalidRequest: the prompt, a picture or an option
        cannot be served."""
        ...


@runtime_checkable
class ThinkingBuilder(ImageBuilder, Protocol):
    """A builder whose model may plan a picture in words before it draws."""

    @property
    def thought(self) -> str:
        """The `stage.port` from which a thought's tokens go to the client, one code each. It ends
        for every picture, with or without a thought."""
        ...

    def reader(self) -> TextReader: ...
