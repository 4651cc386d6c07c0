"""What the api needs of a model that draws: one picture for each request, with its progress.

The life of a drawing is that of an utterance (`contract.service`): entered, iterated, left.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from cantata.contract.chat_service import ChatService
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.service import AdmissionReport

DrawingEvent = Thought | Progress | Image


@dataclass(frozen=True, slots=True)
class Drawing:
    """One picture that is being drawn. Iterating over it gives its thought, its progress, once, and
    at last exactly one `Image`. Progress that is not taken in time is replaced by later progress.

    Raises:
        RequestFailed: a stage could not finish it (`ChunkTimeout`: no sign of it in time).
        StageDied: a process that held it died.
    """

    request_id: str
    """The id by which the stages know it."""
    width: int
    """Pixels, as the next one."""
    height: int
    steps: int
    prompt_tokens: int
    """Of the prompt's text."""
    reference_tokens: int
    """Of the pictures in it."""
    events: AsyncIterator[DrawingEvent]

    def __aiter__(self) -> AsyncIterator[DrawingEvent]:
        return self.events


class ImageModel(Protocol):
    """One model, ready to draw."""

    @property
    def name(self) -> str:
        """The id by which clients ask for it."""
        ...

    @property
    def limits(self) -> ImageLimits:
        """What pictures it makes."""
        ...

    @property
    def note(self) -> str:
        """What users should know of it beside its limits; may be empty."""
        ...

    @property
    def admission(self) -> AdmissionReport:
        """Running requests, and rejected ones."""
        ...

    def check_room(self) -> None:
        """Reject a request if every slot is taken; takes microseconds.

        Raises:
            Overloaded: they are.
        """
        ...

    def draw(self, request: ImageRequest) -> AbstractAsyncContextManager[Drawing]:
        """Draw one picture. The request is within `limits`.

        Leaving the context, at the end as well as on an error or a cancellation, returns only
        when every stage has freed the request.

        Raises:
            Overloaded: it would be finished too late (on entering); tells when to try again.
            InvalidRequest: the prompt, a picture or an option cannot be served (on entering).
        """
        ...


class ImageService(ChatService, Protocol):
    """Every model of one server, those that draw among them."""

    @property
    def image_models(self) -> Mapping[str, ImageModel]:
        """By name, in the order of the configuration; empty if none draws."""
        ...

    def image_model(self, name: str | None) -> ImageModel:
        """The model of this name; None, or one of OpenAI's names of models that draw, the first.

        Raises:
            ModelNotFound: none has it; the message lists the valid names.
        """
        ...
