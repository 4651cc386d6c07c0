"""A text model spoken by a voice: as one model of one server, beside two servers joined by HTTP.

The joined pair is what an application without a composed model does: it streams the text of
`/v1/chat/completions` from one server, and sends each sentence to `/v1/audio/speech` of the other
once it is complete. Both ways are asked the same questions in turn, and write the same answers.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from cantata.text.sentences import split_sentences
from cantata_bench.machine import watched
from cantata_bench.server import RunningServer, running_server
from cantata_bench.tables import table

RATE = 24_000
MAX_TOKENS = 48
LIMIT_S = 120.0
QUESTIONS = (
    "What is the sea?",
    "Why do people sing?",
    "How does a bicycle stay up?",
    "What do bees do in winter?",
    "Tell me about the moon.",
    "What makes good bread?",
    "Why is the sky blue?",
    "How do I grow tomatoes?",
)
FIRST_SOUND_GOAL, CROWD_GOAL = 0.7, 2.0
"""Times the joined pair's first sound; and, of the 95th percentile, times one session's."""


@dataclass(frozen=True, slots=True)
class AnswerTiming:
    """One question's answer."""

    text: str
    first_sound_s: float
    """From sending the question."""
    sound_s: float
    """Length of all sound."""


@dataclass(slots=True)
class WayFigures:
    """One way to have answers spoken."""

    answers: list[AnswerTiming] = field(default_factory=list)
    cpu_s: float = 0.0
    """Of all processes of its servers, while they answered."""

    @property
    def first_sounds(self) -> tuple[float, float]:
        """Seconds to the first sound: median and 95th percentile."""
        p50, p95 = np.percentile([one.first_sound_s for one in self.answers], [50, 95])
        return float(p50), float(p95)

    @property
    def cpu_per_s(self) -> float:
        """CPU seconds per second of sound."""
        return self.cpu_s / sum(one.sound_s for one in self.answers)


@dataclass(frozen=True, slots=True)
class ComposedFigures:
    """Both ways alone, and the composed model with several sessions at a time."""

    composed: WayFigures
    joined: WayFigures
    crowd: WayFigures
    sessions: int


def measure_composed(
    mind: str, voice: str, rounds: int, sessions: int, folder: Path, tell: Callable[[str], None]
) -> ComposedFigures:
    """Serve both models together and apart, and ask them in turn.

    Args:
        mind: the text model.
        voice: the model that speaks.
        rounds: how often each question is asked, after one that is not counted.
        sessions: that ask the composed model at a time, in the end.
        folder: takes the servers' logs.
        tell: gets a line of progress.

    Raises:
        RuntimeError: a server did not start, or both ways wrote different answers.
    """
    with ExitStack() as stack:

        def serve(name: str, *models: str) -> RunningServer:
            options = [option for model in models for option in ("--model", model)]
            return stack.enter_context(running_server(folder / f"{name}.log", options=options))

        tell("loading both models in one server, and each in one of its own")
        together = serve("together", voice, mind)
        writer, speaker = serve("mind", mind), serve("voice", voice)
        composed, joined, crowd = WayFigures(), WayFigures(), WayFigures()
        for number in range(rounds + 1):
            for question in QUESTIONS:
                apart = ask_joined(writer.url, speaker.url, mind, question)
                turns = [
                    (composed, ask_composed(together.url, mind, question), [together]),
                    (joined, apart, [writer, speaker]),
                ]
                for way, asking, servers in turns if number % 2 else turns[::-1]:
                    _measure(way if number else WayFigures(), [asking], servers)
            tell(f"round {number} of {rounds}")
        texts = [[one.text for one in way.answers] for way in (composed, joined)]
        if sorted(texts[0]) != sorted(texts[1]):
            raise RuntimeError("both ways are to write the same answers, and do not")
        tell(f"{sessions} sessions at a time")
        for _ in range(rounds):
            asked = [QUESTIONS[n % len(QUESTIONS)] for n in range(sessions)]
            _measure(crowd, [ask_composed(together.url, mind, one) for one in asked], [together])
    return ComposedFigures(composed, joined, crowd, sessions)


async def ask_composed(url: str, mind: str, question: str) -> AnswerTiming:
    """Ask one server for text and sound."""
    body = {"modalities": ["text", "audio"], "audio": {"format": "pcm16"}}
    text, first_s, samples = "", 0.0, 0
    began = time.monotonic()
    async with aclosing(_stream_chat(url, mind, question, body)) as deltas:
        async for delta in deltas:
            audio = delta.get("audio") or {}
            text += delta.get("content") or audio.get("transcript") or ""
            if data := base64.b64decode(audio.get("data") or ""):
                first_s = first_s or time.monotonic() - began
                samples += len(data) // 2
    return AnswerTiming(text, first_s, samples / RATE)


async def ask_joined(writer: str, speaker: str, mind: str, question: str) -> AnswerTiming:
    """Ask one server for text, and another for the sound of each sentence."""
    sentences: asyncio.Queue[str | None] = asyncio.Queue()
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(_write_sentences(writer, mind, question, sentences))
        speaking = group.create_task(_speak_sentences(speaker, sentences))
    first_at, samples = speaking.result()
    return AnswerTiming(writing.result(), first_at - began, samples / RATE)


def composed_table(found: ComposedFigures) -> str:
    """Markdown, with goals."""
    rows = [
        [
            name,
            str(len(way.answers)),
            f"{way.first_sounds[0]:.2f} / {way.first_sounds[1]:.2f} s",
            f"{way.cpu_per_s:.2f}",
        ]
        for name, way in (
            ("one server", found.composed),
            ("two servers, joined by HTTP", found.joined),
            (f"one server, {found.sessions} at a time", found.crowd),
        )
    ]
    head = ["", "answers", "first sound, p50 / p95", "CPU s per s of sound"]
    share = found.composed.first_sounds[0] / found.joined.first_sounds[0]
    cpu = found.composed.cpu_per_s / found.joined.cpu_per_s
    crowd = found.crowd.first_sounds[1] / found.composed.first_sounds[1]
    return (
        f"{table(head, rows)}\n"
        f"First sound of one server: {share:.2f} times that of two "
        f"(goal {FIRST_SOUND_GOAL}: {_judge(share, FIRST_SOUND_GOAL)}), CPU {cpu:.2f} times; "
        f"p95 of {found.sessions} at a time: {crowd:.2f} times one's "
        f"(goal {CROWD_GOAL:g}: {_judge(crowd, CROWD_GOAL)})."
    )


def _judge(value: float, goal: float) -> str:
    return "met" if value <= goal else "missed"


def _measure(
    way: WayFigures, asking: Sequence[Awaitable[AnswerTiming]], servers: Sequence[RunningServer]
) -> None:
    async def ask() -> list[AnswerTiming]:
        async with asyncio.timeout(LIMIT_S):
            return await asyncio.gather(*asking)

    with ExitStack() as stack:
        usages = [stack.enter_context(watched(server.pid)) for server in servers]
        way.answers += asyncio.run(ask())
    way.cpu_s += sum(process.cpu_s for usage in usages for process in usage.processes)


async def _write_sentences(
    url: str, mind: str, question: str, sentences: asyncio.Queue[str | None]
) -> str:
    """Pass on each sentence once it is complete; returns the text."""
    text, rest = "", ""
    async with aclosing(_stream_chat(url, mind, question, {})) as deltas:
        async for delta in deltas:
            piece = delta.get("content") or ""
            text, rest = text + piece, rest + piece
            spans, end = split_sentences(rest)
            for span in spans:
                sentences.put_nowait(rest[span.start : span.end])
            rest = rest[end:]
    if rest.strip():
        sentences.put_nowait(rest.strip())
    sentences.put_nowait(None)
    return text


async def _speak_sentences(url: str, sentences: asyncio.Queue[str | None]) -> tuple[float, int]:
    """When the first sound came, and all samples."""
    first_at, samples = 0.0, 0
    async with httpx.AsyncClient(base_url=url, timeout=LIMIT_S, trust_env=False) as http:
        while (sentence := await sentences.get()) is not None:
            body = {"input": sentence, "response_format": "pcm", "sample_rate": RATE}
            async with http.stream("POST", "/v1/audio/speech", json=body) as answer:
                answer.raise_for_status()
                async for data in answer.aiter_raw():
                    first_at = first_at or time.monotonic()
                    samples += len(data)
    return first_at, samples // 2


async def _stream_chat(
    url: str, mind: str, question: str, more: dict[str, Any]
) -> AsyncGenerator[dict[str, Any], None]:
    """The deltas of a greedy answer."""
    body = {
        "model": mind,
        "messages": [{"role": "user", "content": question}],
        "stream": True,
        "temperature": 0,
        "max_completion_tokens": MAX_TOKENS,
        **more,
    }
    async with (
        httpx.AsyncClient(base_url=url, timeout=LIMIT_S, trust_env=False) as http,
        http.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        if answer.is_error:
            raise RuntimeError((await answer.aread()).decode())
        async for line in answer.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise RuntimeError(event["error"]["message"])
            for choice in event["choices"]:
                yield choice["delta"]
