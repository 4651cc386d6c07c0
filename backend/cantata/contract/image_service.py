"""What the api needs of a model that draws: one picture for each request, with its progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cantata.contract.chat_service import ChatService
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.service import Run, ServedModel

DrawingEvent = Thought | Progress | Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing(Run[DrawingEvent]):
    """One picture that is being drawn: its thought, its progress, and at last exactly one `Image`.
    Progress that is not taken in time is replaced by later progress."""

    width: int
    """Pixels, like `height`."""
    height: int
    steps: int
    """Denoising steps of the whole picture."""
    prompt_tokens: int
    """Tokens of the prompt's text."""
    reference_tokens: int
    """Tokens of the pictures in it."""


class ImageModel(ServedModel[ImageRequest, Drawing], Protocol):
    """A model that draws; a request is within `limits`."""

    @property
    def limits(self) -> ImageLimits: ...

    @property
    def note(self) -> str:
        """What users should know of the model besides its limits; may be empty."""
        ...


class ImageService(ChatService, Protocol):
    """Every model of one server, those that draw among them."""

    @property
    def image_models(self) -> Mapping[str, ImageModel]:
        """The models that draw, by name, in the order of the configuration; empty if none does."""
        ...

    def get_image_model(self, name: str | None) -> ImageModel:
        """The model of this name; None, or one of OpenAI's names of models that draw, the first.
        Raises ModelNotFound: none has it; the message lists the valid names."""
        ...
