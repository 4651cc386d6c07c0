"""A server's models by name, and a model's voices by any of their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import ConfigError, ModelNotFound, VoiceNotFound
from cantata.contract.data.request import Voice

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

    def get_model(self, name: str) -> S:
        """Look up a model that speaks texts. Raises ModelNotFound: lists the served names."""
        if name not in self.models and name.startswith(SPEECH_MODEL_ALIASES):
            name = self.default_model
        if name not in self.models:
            served = ", ".join(self.models) or "none"
            raise ModelNotFound(f"no model {name!r} that speaks texts; served: {served}", "model")
        return self.models[name]

    def get_chat_model(self, name: str | None) -> C:
        """Look up a model that answers messages. Raises ModelNotFound: lists the served names."""
        if name is None and self.chat_models:
            name = next(iter(self.chat_models))
        if name is None or name not in self.chat_models:
            served = ", ".join(self.chat_models) or "none"
            asked = "no model" if name is None else f"no model {name!r}"
            raise ModelNotFound(f"{asked} that answers; served: {served}", "model")
        return self.chat_models[name]

    def get_image_model(self, name: str | None) -> D:
        """Look up a model that draws. Raises ModelNotFound: lists the served names."""
        is_unnamed = name is None or name.startswith(IMAGE_MODEL_ALIASES)
        if self.image_models and name not in self.image_models and is_unnamed:
            name = next(iter(self.image_models))
        if name is None or name not in self.image_models:
            served = ", ".join(self.image_models) or "none"
            asked = "no model" if name is None else f"no model {name!r}"
            raise ModelNotFound(f"{asked} that draws; served: {served}", "model")
        return self.image_models[name]

    def get_transcription_model(self, name: str | None) -> T:
        """Look up a model that transcribes speech. Raises ModelNotFound: lists the served names."""
        models = self.transcription_models
        is_unnamed = name is None or name.startswith(TRANSCRIPTION_MODEL_ALIASES)
        if models and name not in models and is_unnamed:
            name = next(iter(models))
        if name is None or name not in models:
            served = ", ".join(models) or "none"
            asked = "no model" if name is None else f"no model {name!r}"
            raise ModelNotFound(f"{asked} that transcribes; served: {served}", "model")
        return models[name]


def find_language(
    voices: Sequence[Voice], can: Capabilities, voice: str, options: Mapping[str, Any]
) -> str:
    """BCP 47 tag of the language that a request is read in: the one that it asks for, its voice's,
    or the model's. Raises VoiceNotFound: there is no such voice."""
    asked = options.get("language")
    if asked in can.spoken_languages:
        return str(asked)
    return find_voice(voices, voice, "", blends=can.voice_blends).language or can.language


def with_aliases(
    voices: Sequence[Voice], aliases: Mapping[str, str], model: str
) -> tuple[Voice, ...]:
    """The voices with more names.

    Args:
        voices: the model's, the default first.
        aliases: alias -> any name of one of them.
        model: named in the error.

    Raises:
        ConfigError: an alias for a voice that there is not, or that already names another.
    """
    if not aliases:
        return tuple(voices)
    more: dict[str, list[str]] = {voice.id: [] for voice in voices}
    for alias, name in aliases.items():
        try:
            target = find_voice(voices, name, model)
        except VoiceNotFound as error:
            raise ConfigError(f"voice_aliases: {alias!r}: {error}") from None
        existing = next((voice for voice in voices if _is_called(voice, alias)), target)
        if existing.id != target.id:
            raise ConfigError(f"voice_aliases: {alias!r} already names voice {existing.id!r}")
        more[target.id].append(alias)
    return tuple(replace(voice, aliases=(*voice.aliases, *more[voice.id])) for voice in voices)


def _is_called(voice: Voice, name: str) -> bool:
    names = (voice.id, voice.name, *voice.aliases)
    return name.casefold() in {one.casefold() for one in names}


def find_voice(
    voices: Sequence[Voice], name: str | None, model: str, *, blends: bool = False
) -> Voice:
    """Look a voice up by id, name or alias; None is the default.

    Args:
        voices: the model's, the default first.
        name: in any case.
        model: named in the error.
        blends: the name may be a mixture (`Capabilities.voice_blends`), whose id has those of the
            voices in it.

    Raises:
        VoiceNotFound: lists the valid ids.
    """
    if name is None:
        return voices[0]
    for voice in voices:
        if _is_called(voice, name):
            return voice
    if blends and ("+" in name or "(" in name):
        parts = [part.partition("(") for part in name.split("+")]
        mixed = [find_voice(voices, part.strip(), model) for part, _, _ in parts]
        shares = (
            voice.id + bracket + weight
            for voice, (_, bracket, weight) in zip(mixed, parts, strict=True)
        )
        return Voice("+".join(shares), name, language=mixed[0].language)
    valid = ", ".join(voice.id for voice in voices)
    raise VoiceNotFound(f"model {model!r} has no voice {name!r}; voices: {valid}", "voice")
