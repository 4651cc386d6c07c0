"""Second turns: what is asked, what is read of the answers, and the table."""

from __future__ import annotations

import json

import httpx

from cantata_bench.second_turn import Pair, ask, build_row, first_turn, second_turn


def test_first_turns_are_as_long_and_differ_from_their_beginning_on() -> None:
    texts = [first_turn(20, seed)["content"].split() for seed in range(3)]
    assert {len(text) for text in texts} == {21}
    assert len({text[0] for text in texts}) == 3
    assert first_turn(20, 1) == first_turn(20, 1)


def test_a_second_turn_repeats_the_first() -> None:
    first = first_turn(5, 0)
    begun, answer, question = second_turn(first)
    assert begun == first
    assert (answer["role"], question["role"]) == ("assistant", "user")


def test_the_first_text_counts_and_not_the_first_event() -> None:
    def chunk(**fields: object) -> str:
        return f"data: {json.dumps({'choices': [], **fields})}\n\n"

    body = (
        chunk(choices=[{"delta": {"role": "assistant", "content": ""}}])
        + chunk(choices=[{"delta": {"content": "It"}}])
        + chunk(usage={"prompt_tokens": 33})
        + "data: [DONE]\n\n"
    )
    asked: list[dict[str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, text=body)

    with httpx.Client(base_url="http://server", transport=httpx.MockTransport(answer)) as http:
        first_s, tokens = ask(http, second_turn(first_turn(5, 0)))
    assert first_s > 0
    assert tokens == 33
    assert "modalities" not in asked[0], "an answer in text"
    assert asked[0]["temperature"] == 0


def test_a_row_tells_medians_of_pairs() -> None:
    pairs = [Pair(0.02, 0.2, 90), Pair(0.05, 0.1, 91), Pair(0.01, 0.1, 92)]
    assert build_row(7, pairs) == ("7", "91", "100 ms", "20 ms", "0.10")
