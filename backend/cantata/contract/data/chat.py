"""A conversation to be continued: what a model that thinks is asked.

Letters: N samples, C channels, T frames, H height, W width.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Role(StrEnum):
    """Who wrote a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    """Says what a call came to."""


class Modality(StrEnum):
    """What a part of a message is, and what a model takes or makes."""

    TEXT = "text"
    AUDIO = "audio"
    IMAGE = "image"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class TextPart:
    """Some text."""

    text: str


@dataclass(frozen=True, slots=True)
class AudioPart:
    """A sound, decoded and limited by the api."""

    samples: NDArray[np.float32]
    """[N, C], in -1..1; at least one sample."""
    sample_rate: int
    """Hz, the file's own, up to 48,000. Models resample and mix."""


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture, decoded and limited by the api."""

    pixels: NDArray[np.uint8]
    """[H, W, 3] RGB, upright."""


@dataclass(frozen=True, slots=True)
class VideoPart:
    """A film, decoded, sampled and limited by the api."""

    frames: NDArray[np.uint8]
    """[T, H, W, 3] RGB; at least one."""
    frames_per_s: float
    """Of these frames, not of the file."""
    sound: AudioPart | None = None
    """Only where the client asked for it, and the file has some."""


Part = TextPart | AudioPart | ImagePart | VideoPart


def modality_of(part: Part) -> Modality:
    """What a part is."""
    match part:
        case TextPart():
            return Modality.TEXT
        case AudioPart():
            return Modality.AUDIO
        case ImagePart():
            return Modality.IMAGE
        case VideoPart():
            return Modality.VIDEO


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that an assistant's message made."""

    name: str
    arguments: str
    """JSON, as the model wrote it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant."""


@dataclass(frozen=True, slots=True)
class Thought:
    """More of the words in which a model thinks before it answers or draws, never cut inside a
    character. They may be empty."""

    text: str
    tokens: int
    """That it came from."""

    def then(self, later: Thought) -> Thought:
        """Both."""
        return Thought(self.text + later.text, self.tokens + later.tokens)


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The answer calls a tool."""

    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of the JSON that the call in progress passes."""

    text: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A conversation whose next message the model is to write, as the api validated it."""

    messages: tuple[Message, ...]
    """At least one."""
    voice: str | None = None
    """Id of the voice that speaks the answer. None: it is not spoken, and no stage that makes sound
    takes part."""
    max_tokens: int | None = None
    """Tokens of text after which the answer is cut. None: as many as fit."""
    seed: int | None = None
    """Same seed, same answer. None: the plug-in's default."""
    temperature: float | None = None
    """0 is greedy, in speech too. None: the deployment's default, as the next two."""
    top_k: int | None = None
    """0 means all."""
    top_p: float | None = None
    repetition_penalty: float | None = None
    """Of the text; 1 changes nothing. None: the deployment's default."""
    presence_penalty: float = 0.0
    """Of the text: taken once from the score of each token of the answer so far."""
    frequency_penalty: float = 0.0
    """The same, as often as the token was used."""
    tools: tuple[str, ...] = ()
    """That the model may call, each as the JSON of OpenAI's object. Its answer is not spoken."""
    thinks: bool = False
    """The model thinks in words before it answers; only for one that can."""
