"""Turns conversations into the thinker's input."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, cast

import numpy as np

from cantata.contract.data.chat import ChatRequest, Message, Modality, Role, TextPart
from cantata.contract.data.request import PipelineRequest, SamplingOptions, Voice
from cantata.contract.model.conversation import AnswerParser, PlannedAnswer
from cantata_layers.json_fields import read_json
from cantata_layers.omni.inputs import ThinkerInput
from cantata_layers.token_reader import TokenReader
from cantata_models.text_model.answer_parser import PlainAnswerParser, VllmParsers
from cantata_models.text_model.config import CONFIG, load_settings
from cantata_models.text_model.options import TextModelOptions
from cantata_models.text_model.parser_defaults import guess_reasoning_parser, guess_tool_parser
from cantata_models.text_model.pipeline import THINKER
from cantata_models.text_model.prompt import PromptWriter

DEFAULTS = TextModelOptions()
_OFF = "off"


class TextModelBuilder:
    """Implements `contract.model.conversation.ParsedChatBuilder`.

    Args:
        checkpoint: its folder.
        options: of the deployment.

    Raises:
        ConfigError: a file is missing or damaged, or vLLM has no such parser.
    """

    takes = frozenset({Modality.TEXT})
    text = f"{THINKER}.codes"
    voices: tuple[Voice, ...] = ()

    def __init__(self, checkpoint: Path, options: TextModelOptions = DEFAULTS) -> None:
        self._settings = load_settings(checkpoint)
        self._prompts = PromptWriter(checkpoint)
        template = self._prompts.template
        model_type = str(read_json(checkpoint / CONFIG).values.get("model_type"))
        tools = _chosen(options.tool_parser, guess_tool_parser(template))
        thoughts = _chosen(options.reasoning_parser, guess_reasoning_parser(template, model_type))
        self._parsers = (
            VllmParsers(self._prompts.tokenizer, tools, thoughts) if tools or thoughts else None
        )
        self.calls_tools = tools is not None
        self.thinks = thoughts is not None and self._prompts.can_be_asked_to_think
        self._always_parses = thoughts is not None

    @property
    def warm_up(self) -> ChatRequest:
        """A short greeting."""
        return ChatRequest((Message(Role.USER, (TextPart("Hello."),)),), max_tokens=4)

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        """Return the thinker's input.

        Raises:
            InvalidRequest: the chat template refuses the messages.
        """
        tokens = self._prompts.write(request)
        thinker = ThinkerInput(
            tokens=tokens,
            media=np.zeros(0, np.int32),
            positions=None,
            identities=tokens,
            max_tokens=request.max_tokens,
            exports_rows=False,
            sampling=self._sampling(request),
        )
        return PlannedAnswer(PipelineRequest(request_id, {THINKER: thinker}), len(tokens))

    def parser(self, request: ChatRequest, planned: PlannedAnswer) -> AnswerParser:
        """Return the parser of one answer."""
        if self._parsers is None or not (request.tools or self._always_parses):
            return PlainAnswerParser(TokenReader(self._prompts.words))
        thinker = cast(ThinkerInput, planned.request.inputs[THINKER])
        options = self._prompts.choose_options(request)
        return self._parsers.open(request, options, thinker.tokens)

    def _sampling(self, request: ChatRequest) -> SamplingOptions:
        defaults = self._settings.sampling
        return SamplingOptions(
            seed=secrets.randbits(63) if request.seed is None else request.seed,
            temperature=_or(request.temperature, defaults.temperature),
            top_k=_or(request.top_k, defaults.top_k),
            top_p=_or(request.top_p, defaults.top_p),
            repetition_penalty=_or(request.repetition_penalty, defaults.repetition_penalty),
            presence_penalty=request.presence_penalty,
            frequency_penalty=request.frequency_penalty,
        )


def _chosen(named: str | None, guessed: str | None) -> str | None:
    return None if named == _OFF else named or guessed


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
