"""A server's models by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from cantata.contract.data.errors import ModelNotFound

SPEECH_MODEL_ALIASES = ("tts-1", "gpt-4o-mini-tts")
"""Prefixes of names that clients send routinely for speech, such as `tts-1-hd` and
`gpt-4o-mini-tts-2025-12-15`; they select the default model."""
IMAGE_MODEL_ALIASES = ("gpt-image-", "chatgpt-image-", "dall-e-")
"""Prefixes of names that clients send routinely for pictures; they select the first model that
draws."""

TRANSCRIPTION_MODEL_ALIASES = (
    "whisper-1",
    "gpt-4o-transcribe",
    "gpt-4o-mini-transcribe",
    "gpt-transcribe",
    "gpt-live-transcribe",
    "gpt-realtime-whisper",
)
"""Prefixes of names that clients send routinely for transcripts; they select the first model that
listens."""

S = TypeVar("S")
C = TypeVar("C")
D = TypeVar("D")
T = TypeVar("T")


class Catalogue(Generic[S, C, D, T]):
    """Models that speak, that answer (chat), that draw and that transcribe, each kind by name and
    in order.

    Attributes:
        default_model: of those that speak, for requests that name none.
    """

    def __init__(
        self,
        models: Mapping[str, S],
        chat_models: Mapping[str, C],
        image_models: Mapping[str, D],
        transcription_models: Mapping[str, T],
        default_model: str,
    ) -> None:
        self.models, self.chat_models, self.image_models = models, chat_models, image_models
        self.transcription_models = transcription_models
        self.default_model = default_model

    def model(self, name: str) -> S:
        """Look up a model that speaks texts.

        Raises:
            ModelNotFound: lists the served names.
        """
        if name not in self.models and name.startswith(SPEECH_MODEL_ALIASES):
            name = self.default_model
        if name not in self.models:
            served = ", ".join(self.models) or "none"
            raise ModelNotFound(f"no model {name!r} that speaks texts; served: {served}", "model")
        return self.models[name]

    def chat_model(self, name: str | None) -> C:
        """Look up a model that answers messages.

        Raises:
            ModelNotFound: lists the served names.
        """
        if name is None and self.chat_models:
            name = next(iter(self.chat_models))
        if name is None or name not in self.chat_models:
            served = ", ".join(self.chat_models) or "none"
            asked = "no model" if name is None else f"no model {name!r}"
            raise ModelNotFound(f"{asked} that answers; served: {served}", "model")
        return self.chat_models[name]

    def image_model(self, name: str | None) -> D:
        """Look up a model that draws.

        Raises:
            ModelNotFound: lists the served names.
        """
        is_unnamed = name is None or name.startswith(IMAGE_MODEL_ALIASES)
        if self.image_models and name not in self.image_models and is_unnamed:
            name = next(iter(self.image_models))
        if name is None or name not in self.image_models:
            served = ", ".join(self.image_models) or "none"
            asked = "no model" if name is None else f"no model {name!r}"
            raise ModelNotFound(f"{asked} that draws; served: {served}", "model")
        return self.image_models[name]

    def transcription_model(self, name: str | None) -> T:
        """Look up a model that transcribes speech.

        Raises:
            ModelNotFound: lists the served names.
        """
        models = self.transcription_models
        is_unnamed = name is None or name.startswith(TRANSCRIPTION_MODEL_ALIASES)
        if models and name not in models and is_unnamed:
            name = next(iter(models))
        if name is None or name not in models:
            served = ", ".join(models) or "none"
            asked = "no model" if name is None else f"no model {name!r}"
            raise ModelNotFound(f"{asked} that transcribes; served: {served}", "model")
        return models[name]
