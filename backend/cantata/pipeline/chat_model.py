"""One served model that answers: conversations in, text and sound out."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from cantata.contract.chat_service import (
    Answer,
    AnswerEvent,
    FinishReason,
    TextDelta,
    TextEnd,
)
from cantata.contract.data.chat import (
    AnswerOption,
    ChatRequest,
    Modality,
    TextPart,
    TokenScore,
)
from cantata.contract.data.chunks import Chunk, Codes, Milestone
from cantata.contract.data.request import Voice
from cantata.contract.model.conversation import (
    AnyChatBuilder,
    ChatBuilder,
    ParsedChatBuilder,
    PlannedAnswer,
    ThinkingChatBuilder,
    calls_tools,
)
from cantata.contract.model.pipeline import CLIENT, EdgeSpec
from cantata.contract.service import ADMIT, TEXT, AdmissionReport, SpeechChunk
from cantata.contract.voices import find_voice, with_aliases
from cantata.pipeline.chat_admission import ChatAdmission, ChatPermit
from cantata.pipeline.output_parser import MarkedOutput, OutputParser, ParsedOutput
from cantata.pipeline.output_stream import OpenRequest
from cantata.utils.logs import new_work_id
from cantata.utils.merge_streams import merge_streams

WARM_UP_EVENTS = 3
"""Of each warm-up answer."""


class PipelineChatModel:
    """Implements `contract.chat_service.ChatModel` over a plug-in's builder and its pipeline.

    Args:
        builder: of requests.
        room: for them, in the model's pipeline.
        voice_aliases: more names of its voices.
    """

    def __init__(
        self, builder: AnyChatBuilder, room: ChatAdmission, voice_aliases: Mapping[str, str]
    ) -> None:
        self.name = room.name
        self.orchestrator = room.orchestrator
        self._builder = builder
        self.voices = with_aliases(builder.voices, voice_aliases, room.name)
        """That can speak an answer, the default first."""
        self._text = EdgeSpec(builder.text, CLIENT)
        self._room = room

    @property
    def takes(self) -> frozenset[Modality]:
        """What a message's parts may be."""
        return self._builder.takes

    @property
    def calls_tools(self) -> bool:
        """Whether requests may have tools."""
        return calls_tools(self._builder)

    @property
    def thinks(self) -> bool:
        """Whether requests may ask it to think before it answers."""
        if isinstance(self._builder, ParsedChatBuilder):
            return self._builder.thinks
        return isinstance(self._builder, ThinkingChatBuilder)

    @property
    def options(self) -> frozenset[AnswerOption]:
        """What requests may ask of it besides."""
        builder = self._builder
        return builder.options if isinstance(builder, ParsedChatBuilder) else frozenset()

    @property
    def sample_rate(self) -> int:
        """Hz of the sound; 0 if there is none."""
        if not self.orchestrator.makes_sound:
            return 0
        return self.orchestrator.sound_capacity.sample_rate or 0

    @property
    def channels(self) -> int:
        """Of the sound; 0 if there is none."""
        return self.orchestrator.sound_capacity.channels if self.orchestrator.makes_sound else 0

    @property
    def admission(self) -> AdmissionReport:
        """Running and waiting requests; no places before `start` has finished."""
        return self._room.report

    def voice(self, name: str | None) -> Voice:
        """Look a voice up by id, name or alias; None is the default.

        Raises:
            VoiceNotFound: lists the valid ids.
        """
        return find_voice(self.voices, name, self.name)

    async def start(self) -> None:
        """Start the pipeline, warm it up and measure what it can serve."""
        await self._room.start(self.warm_up)

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        await self._room.stop(deadline_s)

    def check_room(self) -> None:
        """Reject a request that there is no room for; takes microseconds.

        Raises:
            Overloaded: there is none.
        """
        self._room.check_room()

    @asynccontextmanager
    async def answer(self, request: ChatRequest) -> AsyncIterator[Answer]:
        """Continue a conversation; leaving the block frees the request everywhere.

        Raises:
            InvalidRequest: a part or an option cannot be served.
            Overloaded: no place or queue room now.
            Quarantined: the request has ended a stage process twice.
            StageDied: the model is not running.
        """
        await self._room.until_ready()
        self._room.check_room()  # before its text costs any time
        request_id = new_work_id()
        await self._prepare(request)
        build = self._builder.build
        planned = await self._room.text_executor.run(_length(request), build, request_id, request)
        self.orchestrator.check(planned.request)
        text_read = Milestone(TEXT, time.monotonic())
        async with (
            self._room.admit(planned) as permit,
            self.orchestrator.open(planned.request) as opened,
            aclosing(self._events(opened, request, planned, permit)) as events,
        ):
            admitted = Milestone(ADMIT, time.monotonic())
            yield Answer(request_id, planned.prompt_tokens, (text_read, admitted), events)

    async def _prepare(self, request: ChatRequest) -> None:
        """Let the builder make what takes it long."""
        if isinstance(self._builder, ParsedChatBuilder) and (request.format or request.tools):
            executor = self._room.text_executor
            work = await executor.run(0, self._builder.prepare, request)
            if work is not None:
                await executor.run_slow(work)

    async def warm_up(self) -> None:
        """Begin an answer and discard it, in a pipeline that has just started."""
        request = self._builder.warm_up
        planned = await self._room.text_executor.run(0, self._builder.build, new_work_id(), request)
        async with (
            self.orchestrator.open(planned.request) as opened,
            aclosing(self._events(opened, request, planned)) as events,
        ):
            number = 0
            async for event in events:
                number += isinstance(event, SpeechChunk) or request.voice is None
                if number == WARM_UP_EVENTS:
                    break

    async def _events(
        self,
        opened: OpenRequest,
        request: ChatRequest,
        planned: PlannedAnswer,
        permit: ChatPermit | None = None,
    ) -> AsyncGenerator[AnswerEvent, None]:
        """Text and sound; the permit is told of the first output."""
        streams = [self._read(opened, self._output_parser(request, planned), permit)]
        if request.voice is not None:
            streams.append(self._audio_events(opened))
        async with aclosing(merge_streams(*streams)) as events:
            async for event in events:
                if permit is not None and (request.voice is None or isinstance(event, SpeechChunk)):
                    permit.mark_first_output()
                yield event

    async def _read(
        self, opened: OpenRequest, parser: OutputParser, permit: ChatPermit | None
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The text with its thought and its calls, and its end."""
        cached = 0
        async with aclosing(self.orchestrator.output(opened, self._text)) as chunks:
            async for chunk in chunks:
                codes = cast(Chunk[Codes], chunk).payload
                tokens = codes.values[:, 0]
                cached += codes.cached_positions
                if not len(tokens) and not chunk.final:
                    continue  # a sign of life
                if permit is not None:
                    permit.add_tokens(len(tokens))
                for event in parser.read(tokens, last=chunk.final):
                    if codes.logprobs and isinstance(event, TextDelta) and event.tokens:
                        yield replace(event, scores=self._scores(codes))
                    else:
                        yield event
                if chunk.final:
                    # The frame of an end code does not leave its stage.
                    reason = FinishReason.LENGTH if len(tokens) else FinishReason.STOP
                    yield TextEnd(reason, cached)

    def _scores(self, codes: Codes) -> tuple[TokenScore, ...]:
        """How probable the tokens of a chunk were."""
        assert isinstance(self._builder, ParsedChatBuilder)
        spell = self._builder.token_bytes
        tops = codes.top_logprobs or ((),) * len(codes.logprobs)
        return tuple(
            TokenScore(spell(token), logprob, tuple((spell(one), other) for one, other in top))
            for token, logprob, top in zip(
                codes.values[:, 0].tolist(), codes.logprobs, tops, strict=True
            )
        )

    def _output_parser(self, request: ChatRequest, planned: PlannedAnswer) -> OutputParser:
        builder = self._builder
        if isinstance(builder, ParsedChatBuilder):
            return ParsedOutput(builder.parser(request, planned))
        return _marked_output(builder, request)

    async def _audio_events(self, opened: OpenRequest) -> AsyncGenerator[AnswerEvent, None]:
        """The sound."""
        async with aclosing(self.orchestrator.sound(opened)) as chunks:
            async for chunk in chunks:
                yield SpeechChunk(chunk.payload.samples, (), chunk.milestones)


def _marked_output(builder: ChatBuilder, request: ChatRequest) -> OutputParser:
    thinks = request.thinks and isinstance(builder, ThinkingChatBuilder)
    thoughts = cast(ThinkingChatBuilder, builder).thought_reader() if thinks else None
    calls = builder.call_reader() if request.tools else None
    return MarkedOutput(builder.reader(), thoughts, calls)


def _length(request: ChatRequest) -> int:
    """Characters of text."""
    parts: list[Any] = [part for message in request.messages for part in message.parts]
    return sum(len(part.text) for part in parts if isinstance(part, TextPart))
