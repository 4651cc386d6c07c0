"""A measured answer of one model, and its text as it is sent: all before a stop text, with the
scores of its tokens."""

from __future__ import annotations

import math
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import assert_never

from cantata.api.chat.answers import (
    ChatUsage,
    ChoiceLogprobs,
    CompletionDetails,
    LikelyToken,
    PromptDetails,
    ScoredToken,
)
from cantata.api.chat.answers import FinishReason as FinishName
from cantata.api.chat.tools import Call, CalledFunction
from cantata.api.measured_run import MeasuredRun, measure
from cantata.api.schemas import MILLISECONDS_PER_TOKEN
from cantata.contract.chat_service import (
    Answer,
    AnswerDelta,
    AnswerEvent,
    ChatModel,
    FinishReason,
    TextEnd,
)
from cantata.contract.data.chat import CallArguments, CallStarted, ChatRequest, Thought, TokenScore
from cantata.contract.service import Samples, SpeechChunk
from cantata.metrics import Metrics


class StopFilter:
    """Passes text on up to the first stop text, and holds back what may be the beginning of one.

    What leaves does not depend on how the text is cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stopped = False
        """A stop text has come; nothing leaves any more."""
        self._stops = stops
        self._held = ""

    def feed(self, text: str) -> str:
        """Add text; returns what may leave now."""
        if self.stopped:
            return ""
        text = self._held + text
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            # The one that is complete first, as if the text came character by character.
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        cut = len(text) - max((_measure_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[cut:]
        return text[:cut]

    def finish(self) -> str:
        """The text has ended: what was held back is no stop text."""
        held, self._held = self._held, ""
        return held


def _measure_overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text may begin a stop text."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)


class TokenScores:
    """Keeps the log-probabilities of an answer's tokens until they are sent."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, TokenScore]] = []
        """Each with where it begins in the text, in bytes."""
        self._length = 0

    def add(self, scores: Sequence[TokenScore]) -> None:
        for score in scores:
            self._waiting.append((self._length, score))
            self._length += len(score.token)

    def cut(self, length: int) -> None:
        """Drop what begins behind so many bytes of text: a stop text has ended it there."""
        self._waiting = [(start, score) for start, score in self._waiting if start < length]

    def take(self) -> ChoiceLogprobs | None:
        """The scores that were not taken yet; None: there are none."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return None
        return ChoiceLogprobs(content=[_build_scored_token(score) for _, score in waiting])


def _build_scored_token(score: TokenScore) -> ScoredToken:
    top = [_build_likely_token(token, logprob) for token, logprob in score.top]
    own = _build_likely_token(score.token, score.logprob)
    return ScoredToken(token=own.token, logprob=own.logprob, bytes=own.bytes, top_logprobs=top)


def _build_likely_token(token: bytes, logprob: float) -> LikelyToken:
    text = token.decode("utf-8", "replace")
    # JSON has no infinity.
    return LikelyToken(token=text, logprob=max(logprob, -9999.0), bytes=list(token))


@dataclass(frozen=True, slots=True)
class AnswerCallDelta:
    index: int
    """Place among the answer's calls."""
    id: str | None
    """Set in the first piece of a call, as is `name`."""
    name: str | None
    arguments: str


@dataclass(slots=True)
class _OpenCall:
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)


ChoiceDelta = str | Thought | Samples | AnswerCallDelta


class MeasuredAnswer(MeasuredRun[AnswerEvent]):
    """An open answer, and what its events come to so far: text that may leave, thought, calls of
    tools. A whole answer is all of it, read to the end."""

    kind = "answer"

    def __init__(
        self, model: ChatModel, answer: Answer, stops: StopFilter, asked_at: float, metrics: Metrics
    ) -> None:
        super().__init__(model, answer, asked_at, metrics)
        self.tokens = 0
        """Tokens of text, including those of a stop text."""
        self.thought_tokens = 0
        self.cached_tokens = 0
        """Tokens of the conversation that were read from memory; known at the end."""
        self.scores = TokenScores()
        """Of the tokens of text that has left."""
        self._prompt_tokens = answer.prompt_tokens
        self._reason: FinishReason | None = None
        self._stops = stops
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_OpenCall] = []

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def thought(self) -> str | None:
        """The model's thinking so far; None if there is none."""
        return "".join(self._thoughts) or None

    @property
    def finish_reason(self) -> FinishName:
        """Why the text has ended; once it has."""
        assert self._reason is not None, "an answer's text has one end"
        if self._calls and self._reason is FinishReason.STOP:
            return "tool_calls"
        return self._reason.value

    @property
    def usage(self) -> ChatUsage:
        sound = math.ceil(self.duration_s * 1000 / MILLISECONDS_PER_TOKEN)
        output = self.tokens + self.thought_tokens + sound
        return ChatUsage(
            prompt_tokens=self._prompt_tokens,
            completion_tokens=output,
            total_tokens=self._prompt_tokens + output,
            prompt_tokens_details=PromptDetails(cached_tokens=self.cached_tokens),
            completion_tokens_details=CompletionDetails(
                text_tokens=self.tokens,
                audio_tokens=sound,
                reasoning_tokens=self.thought_tokens,
            ),
        )

    @property
    def calls(self) -> list[Call]:
        """The tool calls, as far as they have been sent."""
        return [
            Call(id=one.id, function=CalledFunction(name=one.name, arguments="".join(one.pieces)))
            for one in self._calls
        ]

    def __aiter__(self) -> MeasuredAnswer:
        return self

    async def __anext__(self) -> ChoiceDelta:
        """What is new, never empty, to the answer's end or a stop text."""
        while not self._stops.stopped:
            piece = self._read(await anext(self.run))
            if piece is not None:
                return piece
        self.complete = True
        raise StopAsyncIteration

    def _read(self, event: AnswerEvent) -> ChoiceDelta | None:
        match event:
            case CallStarted() | CallArguments():
                return self._build_call_piece(event)
            case Thought():
                self.thought_tokens += event.tokens
                self._thoughts.append(event.text)
                return event if event.text else None
            case SpeechChunk():
                return event.samples if len(event.samples) else None
            case AnswerDelta() | TextEnd():
                text = self._count_text(event)
                self._texts.append(text)
                return text or None
            case _:
                assert_never(event)

    def _build_call_piece(self, event: CallStarted | CallArguments) -> AnswerCallDelta:
        if isinstance(event, CallStarted):
            self._calls.append(_OpenCall(f"call_{uuid.uuid4().hex}", event.name))
            return AnswerCallDelta(len(self._calls) - 1, self._calls[-1].id, event.name, "")
        self._calls[-1].pieces.append(event.text)
        return AnswerCallDelta(len(self._calls) - 1, None, None, event.text)

    def _count_text(self, event: AnswerDelta | TextEnd) -> str:
        if isinstance(event, TextEnd):
            self._reason = event.reason
            self.cached_tokens = event.cached_tokens
            return self._stops.finish()
        self.tokens += event.tokens
        self.scores.add(event.scores)
        text = self._stops.feed(event.text)
        if self._stops.stopped:
            self._reason = FinishReason.STOP
            self.scores.cut(len((self.text + text).encode()))
        return text


@asynccontextmanager
async def open_answer(
    model: ChatModel, request: ChatRequest, stops: tuple[str, ...], metrics: Metrics
) -> AsyncIterator[MeasuredAnswer]:
    """Open an answer; leaving awaits its abort and counts how it ended."""

    def measured(answer: Answer, asked_at: float) -> MeasuredAnswer:
        return MeasuredAnswer(model, answer, StopFilter(stops), asked_at, metrics)

    is_live, running = request.voice is not None and not request.batch, model.run(request)
    async with measure(
        model.name, running, measured, metrics, is_live=is_live, batch=request.batch
    ) as answer:
        yield answer
