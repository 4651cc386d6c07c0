"""Answers that are held to a format, of a model whose weights are random: they follow it anyway."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jsonschema_rs
import pytest
from tokenizers import pre_tokenizers

from cantata_models.text_model.tests.serving import body

pytestmark = pytest.mark.integration

LONG = 400
"""Tokens; what is asked for has fewer."""
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
NO_BLANKS = {str(ALPHABET.index(symbol)): -100 for symbol in "\u0109\u010a\u010d\u0120"}
"""Tab, line feed, carriage return, blank: random weights write many where JSON allows them."""
SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["cat", "dog"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "names": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
    },
    "required": ["kind", "age", "names"],
    "additionalProperties": False,
}
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "pet", "schema": SCHEMA, "strict": True},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"at": {"enum": ["noon", "night"]}},
                "required": ["at"],
                "additionalProperties": False,
            },
        },
    }
    for name in ("tell_time", "ring")
]


def ask(url: str, **fields: Any) -> dict[str, Any]:
    sent = body(max_tokens=LONG, logit_bias=NO_BLANKS, **fields)
    response = httpx.post(url, json=sent, timeout=120)
    assert response.status_code == 200, response.text
    choice: dict[str, Any] = response.json()["choices"][0]
    return choice


@pytest.mark.parametrize("seed", range(3))
def test_random_weights_write_json_that_follows_the_schema(url: str, seed: int) -> None:
    choice = ask(url, response_format=FORMAT, temperature=1.5, seed=seed)
    assert choice["finish_reason"] == "stop"
    jsonschema_rs.validate(SCHEMA, json.loads(choice["message"]["content"]))


def test_an_answer_in_a_format_is_the_same_in_company(url: str) -> None:
    held = {"response_format": FORMAT, "temperature": 1.0, "seed": 4}
    alone = ask(url, **held)
    with ThreadPoolExecutor(4) as pool:
        free = [pool.submit(ask, url, temperature=1.0, seed=seed) for seed in range(2)]
        beside = [pool.submit(ask, url, **held) for _ in range(2)]
        assert [one.result() for one in beside] == [alone, alone]
        assert all(one.result()["message"]["content"] for one in free)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", "ring"])
def test_random_weights_call_the_tools_that_they_must(url: str, choice: str, stream: bool) -> None:
    named = {"type": "function", "function": {"name": choice}}
    fields = {
        "tools": TOOLS,
        "tool_choice": choice if choice == "required" else named,
        "parallel_tool_calls": False,
        "temperature": 1.0,
        "seed": 2,
    }
    if stream:
        calls, reason = streamed_calls(url, **fields)
    else:
        answer = ask(url, **fields)
        calls, reason = answer["message"]["tool_calls"], answer["finish_reason"]
    assert reason == "tool_calls"
    [call] = calls
    assert call["function"]["name"] in ([choice] if choice == "ring" else ["tell_time", "ring"])
    assert json.loads(call["function"]["arguments"]) in ({"at": "noon"}, {"at": "night"})


def streamed_calls(url: str, **fields: Any) -> tuple[list[dict[str, Any]], str]:
    sent = body(max_tokens=LONG, logit_bias=NO_BLANKS, stream=True, **fields)
    lines = httpx.post(url, json=sent, timeout=120).text.splitlines()
    choices = [json.loads(line[6:])["choices"][0] for line in lines if line.startswith("data: {")]
    calls: list[dict[str, Any]] = []
    for delta in (choice["delta"] for choice in choices):
        for piece in delta.get("tool_calls") or ():
            if piece["index"] == len(calls):
                calls.append({"function": {"name": piece["function"]["name"], "arguments": ""}})
            calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
    return calls, choices[-1]["finish_reason"]


def test_a_hundred_tools_and_arguments_that_are_no_json(url: str) -> None:
    """Too many tools for the context are told as such, and a client's broken call is passed on."""
    names = [f"f{number}" for number in range(100)]
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    choice = {"type": "function", "function": {"name": "f7"}}
    response = httpx.post(url, json=body(tools=tools, tool_choice=choice), timeout=120)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "context_length_exceeded")
    call = {"id": "c", "type": "function", "function": {"name": "ring", "arguments": "{at: noon"}}
    messages = [
        {"role": "user", "content": "Ring."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "rung"},
    ]
    sent = body(messages=messages, max_tokens=3)
    assert httpx.post(url, json=sent, timeout=120).json()["usage"]["completion_tokens"] == 3
