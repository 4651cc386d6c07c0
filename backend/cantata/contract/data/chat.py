"""A conversation that a model continues.

Letters: N samples, C channels, T frames, H height, W width.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Role(StrEnum):
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


MessagePart = TextPart | AudioPart | ImagePart | VideoPart


def get_modality(part: MessagePart) -> Modality:
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
    name: str
    arguments: str
    """JSON as the model wrote it."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    parts: tuple[MessagePart, ...]
    calls: tuple[ToolCall, ...] = ()


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
class TokenScore:
    """How probable a token of an answer was, by the model's own scores, before temperature,
    penalties and a grammar."""

    token: bytes
    """UTF-8; it may be a part of a character."""
    logprob: float
    """Natural logarithm of the probability."""
    top: tuple[tuple[bytes, float], ...] = ()
    """The likeliest tokens with theirs, the likeliest first, if they were asked for."""


class AnswerOption(StrEnum):
    """What not every model that answers can do. Each is the name of the request's field."""

    FORMAT = "response_format"
    """Hold an answer to JSON, or to a schema."""
    TOOL_CHOICE = "tool_choice"
    """Be made to call a tool, and no more than one at a time."""
    LOGPROBS = "logprobs"
    """Say how probable its tokens were."""
    LOGIT_BIAS = "logit_bias"
    REASONING_EFFORT = "reasoning_effort"
    """Be told how much to think."""


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """An answer that is one JSON value."""

    schema: str | None = None
    """JSON Schema, as text. None: any object."""
    strict: bool = False
    """A keyword that cannot be guaranteed is refused, rather than passed over."""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    required: bool = False
    """It calls at least one."""
    name: str | None = None
    """It calls this one, once."""
    parallel: bool = True
    """It may call several."""


ANY_TOOL = ToolChoice()
"""Those that the model chooses, if any."""


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
    chat_template_kwargs: str = "{}"
    """More options of the model's chat template, as a JSON object. It ignores those that it does
    not know, and a model without a template ignores all."""
    reasoning_effort: str | None = None
    """How much it thinks, as its template knows it. This and what follows are for models with the
    `AnswerOption`."""
    format: JsonFormat | None = None
    tool_choice: ToolChoice = ANY_TOOL
    logprobs: bool = False
    """Each token of text comes with a `TokenScore`."""
    top_logprobs: int = 0
    """With `logprobs`: how many of the likeliest tokens come with theirs."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """Tokens, and what is added to the score of each."""
    batch: bool = False
    """Nobody waits for it: it yields to live requests."""
