"""Measure what the prefix cache saves: the time to the first text of a conversation's second turn.

    python -m cantata_bench.second_turn FOLDER [--words 200] [--rounds 10] [--dtype float32]

In a warm conversation, the server has already read the first turn. In a cold one, the first turn is
as long, but new to the server. Warm and cold requests alternate.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from cantata_bench.first_packet import serving
from cantata_bench.noise_guard import observed
from cantata_bench.tables import ms, table

WORDS = (
    *("the", "train", "to", "coast", "leaves", "at", "nine", "and", "next"),
    *("one", "noon", "from", "platform", "by", "river"),
)
ANSWER = "It leaves from platform nine."
QUESTION = "And the one after that?"
TIMEOUT_S = 300.0
WARM_UP = 1
"""Pairs that are not counted."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two second turns of one length, in seconds to their first text."""

    warm_s: float
    cold_s: float
    prompt_tokens: int


def first_turn(words: int, seed: int) -> dict[str, str]:
    """The user's first turn: for every seed, different words from the beginning on."""
    chosen = random.Random(seed).choices(WORDS, k=words)
    return {"role": "user", "content": " ".join((str(seed), *chosen))}


def second_turn(first: dict[str, str]) -> list[dict[str, str]]:
    """The conversation up to the second question."""
    answer = {"role": "assistant", "content": ANSWER}
    return [first, answer, {"role": "user", "content": QUESTION}]


def ask(http: httpx.Client, messages: list[dict[str, str]]) -> tuple[float, int]:
    """Seconds to the first text of an answer in text alone, and the prompt's tokens."""
    body = {
        "messages": messages,
        "max_completion_tokens": 2,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    began, first_s, usage = time.monotonic(), None, 0
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            chunk: dict[str, Any] = json.loads(line[6:]) if line.startswith("data: {") else {}
            # The first event has the role alone; tokens that are no whole character have no text.
            if first_s is None and any(c["delta"].get("content") for c in chunk.get("choices", ())):
                first_s = time.monotonic() - began
            usage = (chunk.get("usage") or {}).get("prompt_tokens", usage)
    whole_s = time.monotonic() - began
    return whole_s if first_s is None else first_s, usage


def ask_pairs(url: str, words: int, rounds: int) -> list[Pair]:
    """Warm and cold turns, one after the other."""
    seeds = itertools.count()
    pairs = []
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as http:
        for _ in range(WARM_UP + rounds):
            known, unknown = first_turn(words, next(seeds)), first_turn(words, next(seeds))
            ask(http, [known])
            warm_s, tokens = ask(http, second_turn(known))
            cold_s, _ = ask(http, second_turn(unknown))
            pairs.append(Pair(warm_s, cold_s, tokens))
    return pairs[WARM_UP:]


def build_row(words: int, pairs: list[Pair]) -> tuple[str, ...]:
    """A line of the table: medians."""
    return (
        str(words),
        f"{statistics.median(pair.prompt_tokens for pair in pairs):.0f}",
        f"{ms(statistics.median(pair.cold_s for pair in pairs))} ms",
        f"{ms(statistics.median(pair.warm_s for pair in pairs))} ms",
        f"{statistics.median(pair.warm_s / pair.cold_s for pair in pairs):.2f}",
    )


def report(model: str, words: list[int], rounds: int, dtype: str) -> Iterator[str]:
    """A table, when all is measured."""
    with serving(model, slots=1, dtype=dtype) as server, observed() as observation:
        rows = [build_row(count, ask_pairs(server.url, count, rounds)) for count in words]
    yield f"Disturbed: {observation.disturbance or 'no'}.\n"
    head = ("words of the first turn", "prompt tokens", "TTFT cold", "TTFT warm", "warm / cold")
    yield table(head, rows)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="as `cantata serve --model` takes it")
    parser.add_argument(
        "--words", type=int, nargs="+", default=[50, 200, 800], help="lengths of the first turn"
    )
    parser.add_argument("--rounds", type=int, default=10, help="requests of each kind and length")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    given = parser.parse_args()
    for part in report(given.model, given.words, given.rounds, given.dtype):
        print(part, flush=True)


if __name__ == "__main__":
    main()
