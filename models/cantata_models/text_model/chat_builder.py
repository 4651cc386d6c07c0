"""Turns conversations into the thinker's input."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import (
    AnswerOption,
    ChatRequest,
    Message,
    Modality,
    Role,
    TextPart,
)
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SamplingOptions, Voice
from cantata.contract.model.conversation import AnswerParser, PlannedAnswer
from cantata_layers.json_fields import read_json
from cantata_layers.token_text import TokenBytes, TokenReader
from cantata_models.text_model.answer_parser import (
    PlainAnswerParser,
    VllmParsers,
    make_format,
)
from cantata_models.text_model.config import CONFIG, find_vocabulary, load_settings
from cantata_models.text_model.grammar import JSON, Grammar, GrammarCompiler
from cantata_models.text_model.inputs import TextModelInput
from cantata_models.text_model.options import (
    TextModelOptions,
    guess_reasoning_parser,
    guess_tool_parser,
)
from cantata_models.text_model.plugin import THINKER
from cantata_models.text_model.prompt import PromptWriter
from cantata_models.text_model.schema_check import check_format

DEFAULTS = TextModelOptions()
_OFF = "off"


class TextModelBuilder:
    """Implements `contract.model.conversation.ParsedChatBuilder`.

    Raises:
        ConfigError: a file is missing or damaged, or vLLM has no such parser.
    """

    takes = frozenset({Modality.TEXT})
    text = f"{THINKER}.codes"
    voices: tuple[Voice, ...] = ()

    def __init__(self, checkpoint: Path, options: TextModelOptions = DEFAULTS) -> None:
        self._settings = load_settings(checkpoint)
        self._prompts = PromptWriter(checkpoint)
        self._bytes = TokenBytes(self._prompts.words)
        template = self._prompts.template
        model_type = str(read_json(checkpoint / CONFIG).values.get("model_type"))
        tools = _choose_parser(options.tool_parser, guess_tool_parser(template))
        thoughts = _choose_parser(
            options.reasoning_parser, guess_reasoning_parser(template, model_type)
        )
        self._parsers = (
            VllmParsers(self._prompts.tokenizer, tools, thoughts) if tools or thoughts else None
        )
        self._vocabulary = find_vocabulary(checkpoint)
        ends = self._settings.end_tokens
        self._grammars = GrammarCompiler(checkpoint, self._vocabulary, ends) if ends else None
        self.calls_tools = tools is not None
        self.thinks = thoughts is not None and self._prompts.can_be_asked_to_think
        self._always_parses = thoughts is not None
        self.options = frozenset(self._list_options())

    @property
    def warm_up(self) -> ChatRequest:
        """A short greeting."""
        return ChatRequest((Message(Role.USER, (TextPart("Hello."),)),), max_tokens=4)

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        """Return the thinker's input. Raises InvalidRequest: the chat template refuses the
        messages, or there is no such token."""
        self._check_bias(request)
        tokens = self._prompts.write(request)
        grammar = self._find_grammar(request)
        thinker = TextModelInput(
            tokens=tokens,
            media=np.zeros(0, np.int32),
            positions=None,
            identities=tokens,
            max_tokens=request.max_tokens,
            exports_rows=False,
            sampling=self._choose_sampling(request),
        )
        if grammar is not None and self._grammars is not None:
            thinker = replace(
                thinker,
                grammar=self._grammars.compile(grammar),
                is_json=grammar.kind == JSON,
                grammar_after=self._list_thought_ends(request, tokens),
            )
        return PlannedAnswer(PipelineRequest(request_id, {THINKER: thinker}), len(tokens))

    def prepare(self, request: ChatRequest) -> Callable[[], object] | None:
        """Return what compiles the answer's grammar; None: there is none, or it is kept. Raises
        InvalidRequest: it has keywords that cannot be guaranteed, or was refused before."""
        grammar = self._find_grammar(request)
        if grammar is None or self._grammars is None or self._grammars.find(grammar) is not None:
            return None
        return partial(self._grammars.compile, grammar)

    def token_bytes(self, token: int) -> bytes:
        return self._bytes.get(token)

    def parser(self, request: ChatRequest, planned: PlannedAnswer) -> AnswerParser:
        if self._parsers is None or not (request.tools or self._always_parses):
            return PlainAnswerParser(TokenReader(self._prompts.words))
        thinker = cast(TextModelInput, planned.request.inputs[THINKER])
        options = self._prompts.choose_options(request)
        return self._parsers.open(request, options, thinker.tokens)

    def _choose_sampling(self, request: ChatRequest) -> SamplingOptions:
        defaults = self._settings.sampling
        return SamplingOptions(
            seed=secrets.randbits(63) if request.seed is None else request.seed,
            temperature=_or(request.temperature, defaults.temperature),
            top_k=_or(request.top_k, defaults.top_k),
            top_p=_or(request.top_p, defaults.top_p),
            repetition_penalty=_or(request.repetition_penalty, defaults.repetition_penalty),
            presence_penalty=request.presence_penalty,
            frequency_penalty=request.frequency_penalty,
            logprobs=request.logprobs,
            top_logprobs=request.top_logprobs,
            code_bias=request.logit_bias,
        )

    def _list_options(self) -> Iterator[AnswerOption]:
        yield AnswerOption.LOGPROBS
        yield AnswerOption.LOGIT_BIAS
        if self._prompts.knows_effort:
            yield AnswerOption.REASONING_EFFORT
        if self._grammars is not None:
            yield AnswerOption.FORMAT
            if self.calls_tools:
                yield AnswerOption.TOOL_CHOICE

    def _find_grammar(self, request: ChatRequest) -> Grammar | None:
        if request.format is not None:
            check_format(request.format)
        if request.tools and self._parsers is not None:
            return self._parsers.constrain(request, self._prompts.choose_options(request))
        return None if request.format is None else make_format(request.format)

    def _list_thought_ends(
        self, request: ChatRequest, prompt: NDArray[np.int32]
    ) -> tuple[int, ...]:
        """Return the tokens after which the answer's words begin; empty: they begin at once."""
        if self._parsers is None or not self._always_parses:
            return ()
        return self._parsers.thought_ends(request, self._prompts.choose_options(request), prompt)

    def _check_bias(self, request: ChatRequest) -> None:
        for token, _ in request.logit_bias:
            if token >= self._vocabulary:
                raise InvalidRequest(
                    f"logit_bias: there is no token {token}; the last is {self._vocabulary - 1}",
                    "logit_bias",
                )


def _choose_parser(named: str | None, guessed: str | None) -> str | None:
    return None if named == _OFF else named or guessed


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
