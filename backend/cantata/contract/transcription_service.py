"""What the api needs of a model that turns speech into text, window by window.

The life of a window is that of a run (`contract.service`), except that it is also fed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.contract.image_service import ImageService
from cantata.contract.model.recognizer import Sound
from cantata.contract.service import ServedModel


class Recognition(Protocol):
    """One window of speech that is being recognized."""

    @property
    def request_id(self) -> str:
        """The id by which the stages know it."""
        ...

    async def feed(self, sound: Sound, *, recognize: bool = False) -> None:
        """Add sound.

        Args:
            recognize: what has been said so far is wanted soon, as the next of `partials`. A model
                that recognizes whole windows ignores it.

        Raises:
            InvalidRequest: the window is longer than the model's longest.
            StageDied: the process that held it died.
        """
        ...

    def partials(self) -> AsyncIterator[Transcript]:
        """What has been said so far, each time it is known; the iterator ends with `finish`.

        Raises:
            RequestFailed: the window cannot be recognized.
            StageDied: the process that held it died.
        """
        ...

    async def finish(self) -> Transcript:
        """The transcript; no sound follows.

        Raises:
            RequestFailed: the window cannot be recognized (`ChunkTimeout`: not in time).
            StageDied: the process that held it died.
        """
        ...


class TranscriptionModel(ServedModel[TranscriptionRequest, Recognition], Protocol):
    """A model that listens. `run` begins a window; if the model is still loading, it waits."""

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags of what it understands. One: it knows no other."""
        ...

    @property
    def translates(self) -> bool:
        """Whether it can write other languages in English."""
        ...

    @property
    def has_timestamps(self) -> bool:
        """Whether it knows when each word was spoken."""
        ...

    @property
    def has_partials(self) -> bool:
        """Whether it recognizes windows that still arrive."""
        ...

    @property
    def max_window_s(self) -> float:
        """Seconds of the longest window."""
        ...


class TranscriptionService(ImageService, Protocol):
    """Every model of one server, those that transcribe among them."""

    @property
    def transcription_models(self) -> Mapping[str, TranscriptionModel]:
        """The models that transcribe, by name, in the order of the configuration; empty if none
        does."""
        ...

    def get_transcription_model(self, name: str | None) -> TranscriptionModel:
        """The model of this name; None, or one of OpenAI's names of models that listen, the first.
        Raises ModelNotFound: none has it; the message lists the valid names."""
        ...
