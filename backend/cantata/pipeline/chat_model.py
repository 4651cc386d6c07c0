"""One served model that answers: conversations in, text and sound out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from cantata.contract.catalogue import find_voice, with_aliases
from cantata.contract.chat_service import (
    Answer,
    AnswerDelta,
    AnswerEvent,
    FinishReason,
    TextEnd,
)
from cantata.contract.data.chat import (
    AnswerOption,
    ChatRequest,
    Modality,
    TextPart,
    TokenScore,
)
from cantata.contract.data.chunks import Chunk, Codes
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
from cantata.contract.service import SpeechChunk
from cantata.pipeline.admission import AdmissionPolicy, Demand
from cantata.pipeline.model import PipelineModel
from cantata.pipeline.output_parser import MarkedOutput, OutputParser, ParsedOutput
from cantata.pipeline.output_stream import OpenRequest
from cantata.utils.logs import make_work_id
from cantata.utils.merge_streams import merge_streams

WARM_UP_EVENTS = 3
"""Events of each warm-up answer that is not spoken; sounds of one that is."""


class PipelineChatModel(PipelineModel):
    """Implements `contract.chat_service.ChatModel` over a plug-in's builder and its pipeline."""

    def __init__(
        self,
        builder: AnyChatBuilder,
        policy: AdmissionPolicy,
        voice_aliases: Mapping[str, str],
        spoken_by: str | None = None,
    ) -> None:
        super().__init__(policy)
        self.spoken_by = spoken_by
        self._builder = builder
        self.voices = with_aliases(builder.voices, voice_aliases, self.name)
        self._text = EdgeSpec(builder.text, CLIENT)

    @property
    def takes(self) -> frozenset[Modality]:
        return self._builder.takes

    @property
    def calls_tools(self) -> bool:
        return calls_tools(self._builder)

    @property
    def thinks(self) -> bool:
        if isinstance(self._builder, ParsedChatBuilder):
            return self._builder.thinks
        return isinstance(self._builder, ThinkingChatBuilder)

    @property
    def options(self) -> frozenset[AnswerOption]:
        builder = self._builder
        return builder.options if isinstance(builder, ParsedChatBuilder) else frozenset()

    @property
    def sample_rate(self) -> int:
        if not self.orchestrator.makes_sound:
            return 0
        return self.orchestrator.sound_capacity.sample_rate or 0

    @property
    def channels(self) -> int:
        return self.orchestrator.sound_capacity.channels if self.orchestrator.makes_sound else 0

    def get_voice(self, name: str | None) -> Voice:
        return find_voice(self.voices, name, self.name)

    async def warm_up(self) -> None:
        request = self._builder.warm_up
        planned = await self._policy.text_executor.run(
            0, self._builder.build, make_work_id(), request
        )
        async with (
            self.orchestrator.open(planned.request) as opened,
            aclosing(self._iterate_events(opened, request, planned)) as events,
        ):
            number = 0
            async for event in events:
                number += isinstance(event, SpeechChunk) or request.voice is None
                if number == WARM_UP_EVENTS:
                    break

    @asynccontextmanager
    async def run(self, request: ChatRequest) -> AsyncIterator[Answer]:
        await self._policy.wait_until_ready()
        if not request.batch:
            self.check_room()  # before its text costs any time
        request_id = make_work_id()
        await self._prepare(request)
        planned = await self._policy.text_executor.run(
            _count_characters(request), self._builder.build, request_id, request
        )
        demand = Demand(
            request_id,
            batch=request.batch,
            is_spoken=request.voice is not None,
            job=planned.steps,
        )
        planned_request = replace(planned.request, batch=request.batch)
        async with (
            self._admit([planned_request], demand) as (permit, milestones),
            self.orchestrator.open(planned_request) as opened,
            aclosing(self._iterate_events(opened, request, planned)) as events,
        ):
            answer = Answer(request_id, milestones, events, prompt_tokens=planned.prompt_tokens)
            if permit is not None:
                answer.observe(permit)
            yield answer

    async def _prepare(self, request: ChatRequest) -> None:
        """Let the builder make what takes it long."""
        if isinstance(self._builder, ParsedChatBuilder) and (request.format or request.tools):
            executor = self._policy.text_executor
            work = await executor.run(0, self._builder.prepare, request)
            if work is not None:
                await executor.run_slow(work)

    def _iterate_events(
        self, opened: OpenRequest, request: ChatRequest, planned: PlannedAnswer
    ) -> AsyncGenerator[AnswerEvent, None]:
        """Text and sound, as they come."""
        streams = [self._read(opened, self._build_output_parser(request, planned))]
        if request.voice is not None:
            streams.append(self._iterate_audio(opened))
        return merge_streams(*streams)

    async def _read(
        self, opened: OpenRequest, parser: OutputParser
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The text with its thought and its calls, and its end."""
        cached = 0
        async for chunk in self.orchestrator.output(opened, self._text):
            codes = cast(Chunk[Codes], chunk).payload
            tokens = codes.values[:, 0]
            cached += codes.cached_positions
            if not len(tokens) and not chunk.final:
                continue  # a sign of life
            for event in parser.read(tokens, last=chunk.final):
                if codes.logprobs and isinstance(event, AnswerDelta) and event.tokens:
                    yield replace(event, scores=self._list_scores(codes))
                else:
                    yield event
            if chunk.final:
                # The frame of an end code does not leave its stage.
                reason = FinishReason.LENGTH if len(tokens) else FinishReason.STOP
                yield TextEnd(reason, cached)

    def _list_scores(self, codes: Codes) -> tuple[TokenScore, ...]:
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

    def _build_output_parser(self, request: ChatRequest, planned: PlannedAnswer) -> OutputParser:
        builder = self._builder
        if isinstance(builder, ParsedChatBuilder):
            return ParsedOutput(builder.parser(request, planned))
        return _parse_marked(builder, request)

    async def _iterate_audio(self, opened: OpenRequest) -> AsyncGenerator[AnswerEvent, None]:
        async for chunk in self.orchestrator.sound(opened):
            if chunk.payload.units:
                yield SpeechChunk(chunk.payload.samples, (), chunk.milestones)


def _parse_marked(builder: ChatBuilder, request: ChatRequest) -> OutputParser:
    thinks = request.thinks and isinstance(builder, ThinkingChatBuilder)
    thoughts = cast(ThinkingChatBuilder, builder).thought_reader() if thinks else None
    calls = builder.call_reader() if request.tools else None
    return MarkedOutput(builder.reader(), thoughts, calls)


def _count_characters(request: ChatRequest) -> int:
    """Characters of text."""
    parts: list[Any] = [part for message in request.messages for part in message.parts]
    return sum(len(part.text) for part in parts if isinstance(part, TextPart))
