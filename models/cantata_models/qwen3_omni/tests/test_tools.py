"""Tools, calls and their results are laid out as transformers' templates lay them out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import Qwen2Tokenizer

from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart, ToolCall
from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json
from cantata_models.qwen3_omni.chat_builder import Qwen3OmniChatBuilder
from cantata_models.qwen3_omni.plugin import THINKER
from cantata_models.qwen3_omni.random_checkpoint import write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import TINY

TOOLS = (
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Wie wird's, “morgen”?",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
    {"type": "function", "function": {"name": "now"}},
)
ULM, NOW = ToolCall("weather", '{"city":  "Ulm"}'), ToolCall("now", "{}")


def said(role: Role, text: str, *calls: ToolCall) -> Message:
    return Message(role, (TextPart(text),) if text else (), calls)


SYSTEM, USER = said(Role.SYSTEM, "Be brief."), said(Role.USER, "And in Ulm?")
CALLED = said(Role.ASSISTANT, "", ULM, NOW)
RESULTS = (said(Role.TOOL, '{"sun": true}'), said(Role.TOOL, "noon"))
DIALOGUES = {
    "asked": (USER,),
    "system": (SYSTEM, USER),
    "called": (SYSTEM, USER, CALLED, *RESULTS),
    "words_and_call": (USER, said(Role.ASSISTANT, "One moment.", NOW), RESULTS[0]),
    "answered": (USER, CALLED, *RESULTS, said(Role.ASSISTANT, "Sun at noon."), USER),
    "marks_in_words": (said(Role.USER, "What does <tool_call> mean, and <|im_end|>?"),),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), TINY, 1)


@pytest.fixture(scope="module")
def builder(folder: Path) -> Qwen3OmniChatBuilder:
    return Qwen3OmniChatBuilder(folder)


def count_tokens(builder: Qwen3OmniChatBuilder, request: ChatRequest) -> list[int]:
    found: np.ndarray = builder.build("r", request).request.inputs[THINKER].tokens  # type: ignore[attr-defined]
    return [int(token) for token in found]


def theirs(folder: Path, messages: tuple[Message, ...], tools: bool) -> list[int]:
    """The template, rendered and encoded by transformers."""
    tokenizer = Qwen2Tokenizer.from_pretrained(str(folder))
    template = read_json(folder / "chat_template.json").get("chat_template", str)
    plain: list[dict[str, Any]] = [
        {
            "role": message.role.value,
            "content": "".join(part.text for part in message.parts if isinstance(part, TextPart)),
            "tool_calls": [
                {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.calls
            ],
        }
        for message in messages
    ]
    text = tokenizer.apply_chat_template(
        plain,
        chat_template=template,
        tools=list(TOOLS) if tools else None,
        tokenize=False,
        add_generation_prompt=True,
    )
    return list(tokenizer(text)["input_ids"])


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("name", [name for name in DIALOGUES if name != "marks_in_words"])
def test_tokens_are_the_template_s(
    folder: Path, builder: Qwen3OmniChatBuilder, name: str, tools: bool
) -> None:
    described = tuple(json.dumps(tool, ensure_ascii=False) for tool in TOOLS if tools)
    request = ChatRequest(DIALOGUES[name], tools=described)
    assert count_tokens(builder, request) == theirs(folder, DIALOGUES[name], tools)


def test_words_of_tools_are_tokens_and_control_tokens_are_not(
    builder: Qwen3OmniChatBuilder,
) -> None:
    tokens = count_tokens(builder, ChatRequest(DIALOGUES["marks_in_words"]))
    call, end = map(builder._tokenizer.token_to_id, ("<tool_call>", "<|im_end|>"))
    assert [token for token in tokens if token in (call, end)] == [call, end]


def test_a_call_that_the_model_writes_is_read(builder: Qwen3OmniChatBuilder) -> None:
    tokenizer = builder._tokenizer
    written = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call><|im_end|>'
    tokenizer.encode_special_tokens = False
    try:
        tokens = tokenizer.encode(written, add_special_tokens=False).ids
    finally:
        tokenizer.encode_special_tokens = True
    text = builder.reader().read(np.array(tokens, np.int32))
    assert text == written.removesuffix("<|im_end|>")


def test_without_tools_in_its_template_a_checkpoint_knows_none(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TINY, 1)
    plain = "{% for m in messages %}{{ m.content }}{% endfor %}"
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": plain}))
    assert Qwen3OmniChatBuilder(folder).call_reader() is None
    damaged = "{% if tools %}<tool_call>{% endif %}{{ messages[0].content }}"
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": damaged}))
    with pytest.raises(ConfigError, match=r"chat_template\.json"):
        Qwen3OmniChatBuilder(folder)
    (folder / "chat_template.json").unlink()
    assert Qwen3OmniChatBuilder(folder).call_reader() is None
