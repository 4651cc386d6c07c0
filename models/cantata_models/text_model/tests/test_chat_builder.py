"""What a conversation becomes for the model, and what its tokens become for the user."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from cantata.contract.data.chat import (
    CallArguments,
    CallStarted,
    ChatRequest,
    Message,
    Role,
    TextPart,
    Thought,
    ToolCall,
)
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata_layers.omni.inputs import ThinkerInput
from cantata_models.text_model import options
from cantata_models.text_model.chat_builder import TextModelBuilder
from cantata_models.text_model.options import TextModelOptions
from cantata_models.text_model.plugin import THINKER
from cantata_models.text_model.prompt import PromptWriter
from cantata_models.text_model.random_checkpoint import write_checkpoint

pytestmark = pytest.mark.integration

TOOL = json.dumps({"type": "function", "function": {"name": "tell_time", "parameters": {}}})
QUESTION = ChatRequest((Message(Role.USER, (TextPart("What time is it?"),)),), seed=3)
CALL = 'Let me see. <tool_call>\n{"name": "tell_time", "arguments": {"zone": "UTC"}}\n</tool_call>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("text"), "llama")


@pytest.fixture(scope="module")
def builder(folder: Path) -> TextModelBuilder:
    return TextModelBuilder(folder, TextModelOptions(reasoning_parser="deepseek_r1"))


def prompt(builder: TextModelBuilder, request: ChatRequest) -> str:
    planned = builder.build("r", request)
    tokens = cast(ThinkerInput, planned.request.inputs[THINKER]).tokens
    assert len(tokens) == planned.prompt_tokens
    return str(builder._prompts.tokenizer.decode(tokens))


def told(builder: TextModelBuilder, request: ChatRequest, answer: str, size: int) -> list[object]:
    """What the tokens of an answer say, so many at a time, pieces of a kind joined."""
    parser = builder.parser(request, builder.build("r", request))
    tokens = np.array(builder._prompts.tokenizer.encode(answer, add_special_tokens=False), np.int32)
    joined: list[object] = []
    starts = range(0, len(tokens), size)
    for start in starts:
        for piece in parser.read(tokens[start : start + size], last=start == starts[-1]):
            match joined[-1] if joined else None, piece:
                case str(before), str():
                    joined[-1] = before + piece
                case Thought() as before, Thought():
                    joined[-1] = before.merge(piece)
                case CallArguments(before_text), CallArguments(text):
                    joined[-1] = CallArguments(before_text + text)
                case _:
                    joined.append(piece)
    return joined


def test_the_template_writes_the_prompt(builder: TextModelBuilder) -> None:
    assert prompt(builder, QUESTION) == (
        "<|im_start|>user\nWhat time is it?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_tools_their_calls_and_results_are_in_it(builder: TextModelBuilder) -> None:
    call = Message(Role.ASSISTANT, (), (ToolCall("tell_time", '{"zone": "UTC"}'),))
    result = Message(Role.TOOL, (TextPart("noon"),))
    written = prompt(
        builder, replace(QUESTION, messages=(*QUESTION.messages, call, result), tools=(TOOL,))
    )
    assert '"name": "tell_time"' in written.split("<|im_start|>user")[0]
    assert '<tool_call>{"name": "tell_time", "arguments": {"zone": "UTC"}}</tool_call>' in written
    assert "<|im_start|>tool\nnoon<|im_end|>" in written


def test_a_template_that_throws_is_the_client_s_fault(builder: TextModelBuilder) -> None:
    own = (*QUESTION.messages, Message(Role.ASSISTANT, (TextPart("Noon."),)))
    with pytest.raises(InvalidRequest, match="the last message is the assistant") as raised:
        builder.build("r", replace(QUESTION, messages=own))
    assert raised.value.param == "messages"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_calls_are_found_however_the_tokens_come(builder: TextModelBuilder, size: int) -> None:
    request = replace(QUESTION, tools=(TOOL,))
    words, name, arguments = told(builder, request, "</think>" + CALL, size)
    assert str(words).strip() == "Let me see."
    assert name == CallStarted("tell_time")
    assert isinstance(arguments, CallArguments)
    assert json.loads(arguments.text) == {"zone": "UTC"}


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_thoughts_are_apart_from_the_words(builder: TextModelBuilder, size: int) -> None:
    found = told(builder, QUESTION, "<think>Hm, time.</think>It is noon. 🌞", size)
    assert found == [Thought("Hm, time.", 0), "It is noon. 🌞"]


def test_a_request_sets_the_template_s_own_options_and_nothing_else(tmp_path: Path) -> None:
    """Not the rendering's: a template that a client writes would run here."""
    folder = write_checkpoint(tmp_path, "llama")
    template = folder / "chat_template.jinja"
    tone = "{{ style.tone if style is defined }}"
    template.write_text(tone + " {{ tools is none }} {{ messages[0].role }}")
    writer = PromptWriter(folder)

    def write(**sent: object) -> str:
        tokens = writer.write(replace(QUESTION, chat_template_kwargs=json.dumps(sent)))
        return str(writer.words.decode(tokens.tolist()))

    assert write(style={"tone": "warm"}) == "warm True user"
    others = {"tools": 1, "messages": [], "chat_template": "x", "tokenize": True, "unknown": 1}
    assert write(**others) == " True user"


def test_without_parsers_an_answer_is_words(folder: Path) -> None:
    plain = TextModelBuilder(folder, TextModelOptions(tool_parser="off", reasoning_parser="off"))
    assert not plain.calls_tools
    assert not plain.thinks
    assert told(plain, QUESTION, CALL, 1) == [CALL]


def test_parsers_are_guessed_by_the_template(folder: Path) -> None:
    assert TextModelBuilder(folder, TextModelOptions()).calls_tools


def test_every_guess_is_a_parser_of_vllm_s(builder: TextModelBuilder) -> None:
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    for _, name in options._TOOLS:
        ToolParserManager.get_tool_parser(name)
    for name in ["deepseek_r1", *(name for _, name in options._THOUGHTS)]:
        ReasoningParserManager.get_reasoning_parser(name)


def test_an_unknown_parser_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match="'hermies'"):
        TextModelBuilder(folder, TextModelOptions(tool_parser="hermies"))


@pytest.mark.parametrize("missing", ["tokenizer.json", "chat_template.jinja"])
def test_a_folder_without_its_words_is_refused(tmp_path: Path, missing: str) -> None:
    folder = write_checkpoint(tmp_path, "llama")
    (folder / missing).unlink()
    with pytest.raises(ConfigError, match=r"no readable tokenizer|no chat template"):
        TextModelBuilder(folder, TextModelOptions())
