"""A `ChatModel` without an engine: answers with what it was asked, in pieces, and counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from cantata.contract.chat_service import (
    Answer,
    AnswerDelta,
    AnswerEvent,
    FinishReason,
    TextEnd,
)
from cantata.contract.data.chat import (
    AnswerOption,
    CallArguments,
    CallStarted,
    ChatRequest,
    Modality,
    TextPart,
    Thought,
)
from cantata.contract.data.chunks import Milestone
from cantata.contract.data.errors import ContextFull, InvalidRequest, Overloaded, VoiceNotFound
from cantata.contract.data.request import Voice
from cantata.contract.service import ADMIT, TEXT, AdmissionReport, Samples, SpeechChunk

CHAT_VOICES = (Voice("ethan", "Ethan", aliases=("alloy",)), Voice("chelsie", "Chelsie"))
PIECE = 3
"""Characters of a text delta; each is one token."""


@dataclass
class ChatBehaviour:
    """How a fake model answers; tests change it before they send requests."""

    text: str | None = None
    """Its answer; None: the last text of the conversation."""
    thought: tuple[str, ...] = ()
    """Of a request that asks for one, a token each."""
    samples: int = 400
    """Of sound for every text delta of a spoken answer."""
    may_continue: asyncio.Event | None = None
    """Awaited before the second event, or before that of the number `waits_at`."""
    waits_at: int = 1
    fail_after: int | None = None
    """Events after which `error` is raised; 0 is before the first."""
    error: Exception | None = None
    calls: tuple[CallStarted | CallArguments, ...] = ()
    """Of a request with tools, after its text."""
    max_messages: int = 1000
    """Beyond which a conversation does not fit, as a stage finds out."""
    capacity: int = 1000
    full: bool = False


@dataclass
class ChatCounts:
    """Counts of what the fake did."""

    open: int = 0
    finished: int = 0
    aborted: int = 0
    events: int = 0
    requests: list[ChatRequest] = field(default_factory=list)


def collect_sound(text: str, samples: int) -> Samples:
    """What a piece of text sounds like: a tone of its own."""
    times = np.arange(samples) / 24_000
    tone = 0.3 * np.sin(2 * np.pi * (200 + 10 * len(text)) * times)
    return tone.astype(np.float32)[:, None]


class FakeChatModel:
    """Repeats the last text that it was sent."""

    def __init__(
        self, name: str, takes: frozenset[Modality], voices: tuple[Voice, ...], sample_rate: int
    ) -> None:
        self.name = name
        self.takes = takes
        self.voices = voices
        self.sample_rate = sample_rate
        self.channels = 1 if voices else 0
        self.spoken_by: str | None = None
        self.calls_tools = bool(voices)
        self.thinks = not voices
        self.options = frozenset[AnswerOption]() if voices else frozenset(AnswerOption)
        self.behaviour = ChatBehaviour()
        self.counts = ChatCounts()
        self._ids = count()

    @property
    def admission(self) -> AdmissionReport:
        running = self.counts.open
        return AdmissionReport(self.behaviour.capacity, running, 0, 0, {}, {}, 1000, running)

    def get_voice(self, name: str | None) -> Voice:
        for voice in self.voices:
            if name in (None, voice.id, voice.name, *voice.aliases):
                return voice
        valid = ", ".join(voice.id for voice in self.voices)
        raise VoiceNotFound(f"no voice {name!r}; valid: {valid}", "voice")

    def check_room(self) -> None:
        if self.behaviour.full:
            raise Overloaded("the queue is full", retry_after_s=2.5)

    @asynccontextmanager
    async def run(self, request: ChatRequest) -> AsyncIterator[Answer]:
        how = self.behaviour
        if self.counts.open >= how.capacity:
            raise Overloaded("all slots are taken", retry_after_s=2.5)
        self.counts.requests.append(request)
        texts = [p.text for m in request.messages for p in m.parts if isinstance(p, TextPart)]
        text = (texts or [""])[-1] if how.text is None else how.text
        if "\x00" in text:
            raise InvalidRequest("the template has no place for it", "messages")
        self.counts.open += 1
        ended = [False]
        try:
            milestones = tuple(Milestone(step, time.monotonic()) for step in (TEXT, ADMIT))
            prompt = sum(len(message.parts) for message in request.messages)
            events = self._events(text, request, ended)
            request_id = f"{self.name}-{next(self._ids)}"
            yield Answer(request_id, milestones, events, prompt_tokens=prompt)
        finally:
            await asyncio.sleep(0)
            self.counts.finished += ended[0]
            self.counts.aborted += not ended[0]
            self.counts.open -= 1

    async def _events(
        self, text: str, request: ChatRequest, ended: list[bool]
    ) -> AsyncIterator[AnswerEvent]:
        how = self.behaviour
        if len(request.messages) > how.max_messages:
            raise ContextFull("the text needs more positions than there are")
        for number, event in enumerate(self._plan(text, request)):
            if how.fail_after == number and how.error is not None:
                raise how.error
            if number == how.waits_at and how.may_continue is not None:
                await how.may_continue.wait()
            await asyncio.sleep(0)
            self.counts.events += 1
            yield event
        ended[0] = True

    def _plan(self, text: str, request: ChatRequest) -> list[AnswerEvent]:
        """Text, and behind each piece the sound of the one before."""
        pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
        cut = request.max_tokens is not None and request.max_tokens < len(pieces)
        pieces = pieces[: request.max_tokens]
        thought = self.behaviour.thought if request.thinks else ()
        plan: list[AnswerEvent] = [Thought(word, 1) for word in thought]
        sounds = [SpeechChunk(collect_sound(piece, self.behaviour.samples)) for piece in pieces]
        for number, piece in enumerate(pieces):
            plan.append(AnswerDelta(piece, 1))
            plan += sounds[max(number - 1, 0) : number]
        if request.tools:
            plan += self.behaviour.calls
        plan.append(TextEnd(FinishReason.LENGTH if cut else FinishReason.STOP))
        plan += sounds[len(pieces) - 1 :]
        if request.voice is None:
            plan = [event for event in plan if not isinstance(event, SpeechChunk)]
        return plan
