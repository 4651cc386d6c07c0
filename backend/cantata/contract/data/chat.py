"""A conversation that a model continues.

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
    """Reports the result of a tool call."""


class Modality(StrEnum):
    """The kind of a message's part, and of what a model takes or makes."""

    TEXT = "text"
    AUDIO = "audio"
    IMAGE = "image"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class AudioPart:
    """A part that is sound, decoded and limited by the api."""

    samples: NDArray[np.float32]
    """[N, C], in -1..1; at least one sample."""
    sample_rate: int
    """Hz; the file's own rate, up to 48,000. Models resample and mix."""


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A part that is a picture, decoded and limited by the api."""

    pixels: NDArray[np.uint8]
    """[H, W, 3] RGB, upright."""


@dataclass(frozen=True, slots=True)
class VideoPart:
    """A part that is a video, decoded, sampled and limited by the api."""

    frames: NDArray[np.uint8]
    """[T, H, W, 3] RGB; at least one."""
    frames_per_s: float
    """Rate of these frames, not of the file's."""
    sound: AudioPart | None = None
    """None if the client did not ask for it, or the file has none."""


Part = TextPart | AudioPart | ImagePart | VideoPart


def get_modality(part: Part) -> Modality:
    """The kind of a part."""
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
    """A tool call in an assistant's message."""

    name: str
    arguments: str
    """JSON as the model wrote it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...] = ()
    """Tool calls of an assistant's message."""


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of the words in which a model thinks before it answers or draws, never cut inside a
    character. It may be empty."""

    text: str
    tokens: int
    """Tokens that the words came from."""

    def merge(self, later: Thought) -> Thought:
        """This piece followed by another."""
        return Thought(self.text + later.text, self.tokens + later.tokens)


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The answer calls a tool."""

    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """A piece of the JSON arguments of the call in progress."""

    text: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A conversation whose next message the model writes, as the api validated it."""

    messages: tuple[Message, ...]
    """The messages, at least one."""
    voice: str | None = None
    """Id of the voice that speaks the answer. None: the answer is not spoken, and no stage that
    makes sound takes part."""
    max_tokens: int | None = None
    """Most tokens of text. None: as many as fit."""
    seed: int | None = None
    """The same seed gives the same answer. None: the plug-in's default."""
    temperature: float | None = None
    """0 is greedy, in speech too. None: the deployment's default, also for `top_k` and `top_p`."""
    top_k: int | None = None
    """0 means all."""
    top_p: float | None = None
    repetition_penalty: float | None = None
    """Penalty on tokens of the text so far; 1 changes nothing. None: the deployment's default."""
    presence_penalty: float = 0.0
    """Subtracted once from the score of each token that is in the text so far."""
    frequency_penalty: float = 0.0
    """Subtracted from a token's score as often as the text so far has that token."""
    tools: tuple[str, ...] = ()
    """Tools that the model may call, each as OpenAI's object in JSON. The answer is not spoken
    then."""
    thinks: bool = False
    """The model thinks in words before it answers. Only for models that can."""
