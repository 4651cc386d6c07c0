"""The messages of edges and replicas about answers.

A conversation's parts are of several classes; on a link, a part has the fields of all of them,
and those of one class are set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from cantata.contract.chat_service import AnswerDelta, AnswerEvent, TextEnd
from cantata.contract.data.chat import (
    ANY_TOOL,
    AudioPart,
    CallArguments,
    CallStarted,
    ChatRequest,
    ImagePart,
    JsonFormat,
    Message,
    MessagePart,
    Role,
    TextPart,
    Thought,
    ToolCall,
    ToolChoice,
    VideoPart,
)
from cantata.contract.service import SpeechChunk
from cantata.distributed.link.errors import ProtocolError
from cantata.distributed.messages import Age, FrameKind, SoundMessage


@dataclass(frozen=True, slots=True)
class SentPart:
    """A part of a message. Frames may have a sound beside them."""

    text: str | None = None
    samples: NDArray[np.float32] | None = None
    sample_rate: int = 0
    pixels: NDArray[np.uint8] | None = None
    frames: NDArray[np.uint8] | None = None
    frames_per_s: float = 0.0

    @classmethod
    def of(cls, part: MessagePart) -> SentPart:
        match part:
            case TextPart(text):
                return cls(text=text)
            case AudioPart(samples, sample_rate):
                return cls(samples=samples, sample_rate=sample_rate)
            case ImagePart(pixels):
                return cls(pixels=pixels)
            case VideoPart(frames, frames_per_s, sound):
                seen = cls(frames=frames, frames_per_s=frames_per_s)
                if sound is None:
                    return seen
                return replace(seen, samples=sound.samples, sample_rate=sound.sample_rate)
            case _:
                assert_never(part)

    @property
    def part(self) -> MessagePart:
        """The part, as it was before it was sent. Raises ProtocolError: it is no part."""
        if self.text is not None:
            return TextPart(self.text)
        if self.pixels is not None:
            return ImagePart(self.pixels)
        sound = None if self.samples is None else AudioPart(self.samples, self.sample_rate)
        if self.frames is not None:
            return VideoPart(self.frames, self.frames_per_s, sound)
        if sound is not None:
            return sound
        raise ProtocolError("a message's part is empty")


@dataclass(frozen=True, slots=True)
class SentMessage:
    role: Role
    parts: tuple[SentPart, ...]
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The fields of `ChatRequest` beside its messages."""

    voice: str | None = None
    max_tokens: int | None = None
    seed: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    tools: tuple[str, ...] = ()
    thinks: bool = False
    chat_template_kwargs: str = "{}"
    reasoning_effort: str | None = None
    format: JsonFormat | None = None
    tool_choice: ToolChoice = ANY_TOOL
    logprobs: bool = False
    top_logprobs: int = 0
    logit_bias: tuple[tuple[int, float], ...] = ()
    batch: bool = False


_OPTIONS = tuple(field.name for field in fields(AnswerOptions))


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A conversation to be continued."""

    work_id: str
    model: str
    messages: tuple[SentMessage, ...]
    options: AnswerOptions

    @classmethod
    def of(cls, work_id: str, model: str, request: ChatRequest) -> AnswerRequest:
        messages = (
            SentMessage(message.role, tuple(map(SentPart.of, message.parts)), message.calls)
            for message in request.messages
        )
        options = AnswerOptions(**{name: getattr(request, name) for name in _OPTIONS})
        return cls(work_id, model, tuple(messages), options)

    @property
    def request(self) -> ChatRequest:
        """The request, as it was before it was sent. Raises ProtocolError: a part of it is none."""
        messages = (
            Message(message.role, tuple(part.part for part in message.parts), message.calls)
            for message in self.messages
        )
        options = {name: getattr(self.options, name) for name in _OPTIONS}
        return ChatRequest(tuple(messages), **options)


@dataclass(frozen=True, slots=True)
class Answering:
    """The work has a place."""

    request_id: str
    """At the replica."""
    prompt_tokens: int
    milestones: tuple[Age, ...]


EVENTS: Mapping[
    int, type[Thought | AnswerDelta | CallStarted | CallArguments | TextEnd | SoundMessage]
] = {
    FrameKind.THOUGHT: Thought,
    FrameKind.TEXT_DELTA: AnswerDelta,
    FrameKind.CALL_STARTED: CallStarted,
    FrameKind.CALL_ARGUMENTS: CallArguments,
    FrameKind.TEXT_END: TextEnd,
    FrameKind.SOUND: SoundMessage,
}


def sent(event: AnswerEvent) -> tuple[FrameKind, object]:
    match event:
        case Thought():
            return FrameKind.THOUGHT, event
        case AnswerDelta():
            return FrameKind.TEXT_DELTA, event
        case CallStarted():
            return FrameKind.CALL_STARTED, event
        case CallArguments():
            return FrameKind.CALL_ARGUMENTS, event
        case TextEnd():
            return FrameKind.TEXT_END, event
        case SpeechChunk():
            return FrameKind.SOUND, SoundMessage.of(event)
        case _:
            assert_never(event)
