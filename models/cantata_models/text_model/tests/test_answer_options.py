"""What clients may ask of an answer besides: how probable it was, several of it, what it cost."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from cantata_models.text_model.tests.serving import QUESTIONS, body

pytestmark = pytest.mark.integration


def ask(url: str, **fields: Any) -> dict[str, Any]:
    response = httpx.post(url, json=body(**fields), timeout=120)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def streamed(url: str, **fields: Any) -> list[dict[str, Any]]:
    lines = httpx.post(url, json=body(stream=True, **fields), timeout=120).text.splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def test_tokens_come_with_their_probabilities(url: str) -> None:
    asked = {"max_tokens": 24, "logprobs": True, "top_logprobs": 3}
    [choice] = ask(url, **asked)["choices"]
    tokens = choice["logprobs"]["content"]
    assert len(tokens) == 24
    written = b"".join(bytes(token["bytes"]) for token in tokens)
    assert written.decode("utf-8", "replace").startswith(choice["message"]["content"][:8])
    for token in tokens:
        first, *others = token["top_logprobs"]
        assert (first["bytes"], first["logprob"]) == (token["bytes"], token["logprob"])
        assert len(others) == 2
        assert all(first["logprob"] >= one["logprob"] for one in others)
    pieces = [chunk["choices"][0]["logprobs"] for chunk in streamed(url, **asked)]
    assert [token for piece in pieces if piece for token in piece["content"]] == tokens


def test_a_response_has_the_same_probabilities(url: str) -> None:
    """OpenAI's newer API tells them in each delta, and again in the whole."""
    chat = ask(url, max_tokens=24, logprobs=True, top_logprobs=3)
    tokens = chat["choices"][0]["logprobs"]["content"]
    body = {
        "model": "text-model",
        "input": QUESTIONS[0],
        "temperature": 0,
        "max_output_tokens": 24,
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 3,
        "stream": True,
    }
    answer = httpx.post(url.replace("chat/completions", "responses"), json=body, timeout=120)
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    events = {event["type"]: event for event in map(json.loads, lines)}
    deltas = [event for event in map(json.loads, lines) if event["type"].endswith("text.delta")]
    told = [token for event in deltas for token in event["logprobs"]]
    assert told == tokens[: len(told)] != []
    assert events["response.output_text.done"]["logprobs"] == tokens
    [message] = events["response.incomplete"]["response"]["output"]
    assert message["content"][0]["logprobs"] == tokens
    assert message["content"][0]["text"] == chat["choices"][0]["message"]["content"]


def test_tokens_behind_a_stop_are_not_told(url: str) -> None:
    whole = ask(url, max_tokens=24)["choices"][0]["message"]["content"]
    [choice] = ask(url, max_tokens=24, logprobs=True, stop=whole[4:6])["choices"]
    told = b"".join(bytes(token["bytes"]) for token in choice["logprobs"]["content"])
    assert choice["message"]["content"] == whole[: whole.index(whole[4:6])]
    assert told.decode() == choice["message"]["content"]


def test_a_bias_forbids_and_forces(url: str) -> None:
    forced = ask(url, max_tokens=5, logit_bias={"65": 100})["choices"][0]["message"]["content"]
    assert len(set(forced)) == 1
    assert len(forced) == 5


def test_each_of_several_answers_is_that_of_its_seed(url: str) -> None:
    asked = {"max_tokens": 12, "temperature": 1.0}
    alone = [ask(url, seed=seed, **asked) for seed in range(7, 10)]
    together = ask(url, seed=7, n=3, **asked)
    told = [choice["message"]["content"] for choice in together["choices"]]
    assert told == [one["choices"][0]["message"]["content"] for one in alone]
    assert [choice["index"] for choice in together["choices"]] == [0, 1, 2]
    usage = together["usage"]
    assert usage["completion_tokens"] == sum(one["usage"]["completion_tokens"] for one in alone)
    assert usage["prompt_tokens"] == alone[0]["usage"]["prompt_tokens"]
    texts = ["", "", ""]
    for chunk in streamed(url, seed=7, n=3, **asked):
        for choice in chunk["choices"]:
            texts[choice["index"]] += choice["delta"].get("content") or ""
    assert texts == told


def test_a_second_turn_is_read_from_memory(url: str) -> None:
    question = {"role": "user", "content": "A question of this test alone, long enough. " * 4}
    first, second = (ask(url, max_tokens=2, messages=[question])["usage"] for _ in range(2))
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    cached = second["prompt_tokens_details"]["cached_tokens"]
    assert second["prompt_tokens"] - 32 <= cached < second["prompt_tokens"]


def test_usage_so_far_comes_with_each_chunk_if_asked_for(url: str) -> None:
    chunks = streamed(url, max_tokens=6, stream_options={"continuous_usage_stats": True})
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks if "usage" in chunk]
    assert counts == sorted(counts)
    assert counts[-1] == 6


WIDE = {"type": "object", "properties": {f"k{i}": {"type": "string"} for i in range(900)}}


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize(
    ("schema", "strict", "param", "says"),
    [
        (WIDE, False, "response_format", "send a"),
        ({"type": "strange"}, False, "response_format", "strange"),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, False, None, "accept"),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            True,
            "response_format.json_schema.schema",
            "'uniqueItems' at / cannot be guaranteed",
        ),
    ],
    ids=["too wide", "no type", "impossible", "not held"],
)
def test_a_schema_that_cannot_be_held_is_refused_and_nobody_waits(
    url: str, schema: dict[str, Any], strict: bool, param: str | None, says: str
) -> None:
    named = {"name": "s", "schema": schema, "strict": strict}
    wanted = {"type": "json_schema", "json_schema": named}
    with ThreadPoolExecutor(1) as pool:
        sent = body(response_format=wanted)
        refused = pool.submit(httpx.post, url, json=sent, timeout=200)
        assert ask(url, max_tokens=3)["usage"]["completion_tokens"] == 3
        response = refused.result()
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (400, "invalid_request_error")
    assert param in (None, error["param"])
    assert says in error["message"]


def test_what_calls_itself_is_held_all_the_same(url: str) -> None:
    node = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}},
        "required": ["next"],
        "additionalProperties": False,
    }
    schema = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    wanted = {"type": "json_schema", "json_schema": {"name": "list", "schema": schema}}
    answer = ask(url, response_format=wanted, max_tokens=100, temperature=1.0, seed=1)
    text = answer["choices"][0]["message"]["content"]
    if answer["choices"][0]["finish_reason"] == "stop":
        assert set(json.loads(text)) == {"next"}
    assert text.lstrip().startswith("{")
