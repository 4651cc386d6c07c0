"""What a replica announces about its models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chat import AnswerOption, Modality
from cantata.contract.data.pictures import ImageLimits
from cantata.contract.data.request import Voice
from cantata.contract.transcription_service import TranscriptionService


@dataclass(frozen=True, slots=True)
class SpeakingModel:
    """One model that speaks texts."""

    name: str
    identity: str
    """Equal where the same request gives the same samples, as far as files and settings can tell:
    of weights, deployment and versions."""
    voices: tuple[Voice, ...]
    sample_rate: int
    """Hz"""
    channels: int
    max_input_characters: int
    sampled: bool
    capabilities: Capabilities


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """One model that answers messages."""

    name: str
    identity: str
    """As a `SpeakingModel`'s."""
    takes: frozenset[Modality]
    calls_tools: bool
    thinks: bool
    options: frozenset[AnswerOption]
    voices: tuple[Voice, ...]
    sample_rate: int
    """Hz; 0 without voices, as the next one."""
    channels: int
    spoken_by: str | None = None


@dataclass(frozen=True, slots=True)
class DrawingModel:
    name: str
    identity: str
    """As a `SpeakingModel`'s."""
    limits: ImageLimits
    note: str


@dataclass(frozen=True, slots=True)
class TranscribingModel:
    """One model that turns speech into text; fields as of `TranscriptionModel`."""

    name: str
    identity: str
    """As a `SpeakingModel`'s."""
    languages: tuple[str, ...]
    translates: bool
    has_timestamps: bool
    has_partials: bool
    max_window_s: float
    is_spare: bool = False
    """The replica was not told to serve it: it only finds the words of spoken conversations. Edges
    leave it aside once they know of one that was named."""


Card = SpeakingModel | AnsweringModel | DrawingModel | TranscribingModel
"""A model that does several things has several cards with one name, and one admission."""
AnyCard = TypeVar("AnyCard", bound=Card)


def compatible(one: Card, other: Card) -> bool:
    """Whether both look the same to clients."""
    return replace(one, identity="") == replace(other, identity="")


def get_format(card: Card) -> tuple[int, int]:
    """Sample rate and channels of the sound; zeros if it makes none."""
    if isinstance(card, SpeakingModel | AnsweringModel):
        return card.sample_rate, card.channels
    return 0, 0


@dataclass(frozen=True, slots=True)
class Advertisement:
    default_model: str
    speaking: tuple[SpeakingModel, ...]
    answering: tuple[AnsweringModel, ...]
    drawing: tuple[DrawingModel, ...]
    transcribing: tuple[TranscribingModel, ...] = ()

    @property
    def cards(self) -> tuple[Card, ...]:
        return *self.speaking, *self.answering, *self.drawing, *self.transcribing


def build_advertisement(
    service: TranscriptionService, identities: Mapping[str, str], spare: Collection[str] = ()
) -> Advertisement:
    """What a service offers, once it has started.

    Args:
        identities: of its models, by name.
        spare: names of those that it was not told to serve.
    """
    speaking = (
        SpeakingModel(
            model.name,
            identities[model.name],
            model.voices,
            model.sample_rate,
            model.channels,
            model.max_input_characters,
            model.sampled,
            model.capabilities,
        )
        for model in service.models.values()
    )
    answering = (
        AnsweringModel(
            model.name,
            identities[model.name],
            model.takes,
            model.calls_tools,
            model.thinks,
            model.options,
            model.voices,
            model.sample_rate,
            model.channels,
            model.spoken_by,
        )
        for model in service.chat_models.values()
    )
    drawing = (
        DrawingModel(model.name, identities[model.name], model.limits, model.note)
        for model in service.image_models.values()
    )
    transcribing = (
        TranscribingModel(
            model.name,
            identities[model.name],
            model.languages,
            model.translates,
            model.has_timestamps,
            model.has_partials,
            model.max_window_s,
            model.name in spare,
        )
        for model in service.transcription_models.values()
    )
    return Advertisement(
        service.default_model,
        tuple(speaking),
        tuple(answering),
        tuple(drawing),
        tuple(transcribing),
    )
