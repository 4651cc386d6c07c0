"""Spoken conversations: how soon an answer begins and stops, and what the server understood.

Each session speaks in real time, hears the beginning of a long answer, and interrupts it with its
next sentence. An endpoint in this process has the answers ready, unless a served model is to write
them, whose time then counts.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from websockets.asyncio.client import ClientConnection, connect

from cantata.config.plugins import list_embedded_models
from cantata_bench.server import free_port, running_server
from cantata_bench.transcription.run import count_errors
from cantata_bench.voice_quality.run import read_sentences

RATE = 24_000
FRAME_S = 0.02
SPOKEN = 12
"""Sentences of the evaluation set that are said in turn."""
SENTENCE = "She went to the market to buy some bread and milk. "
SENTENCES = 60
"""Sentences of an answer: minutes of sound, so that each interruption comes before its end."""
LISTENED_S = 0.5
"""Seconds of an answer that are heard before it is interrupted."""
LOUD = 1000
"""Level at which speech begins, of 32,768: above any noise of a voice."""
WAIT_S = 30.0
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
SESSION: dict[str, Any] = {
    "type": "session.update",
    "session": {
        "type": "realtime",
        "audio": {"input": {"transcription": {"model": "whisper-1", "language": "en"}}},
    },
}

ANSWER_GOAL_S, CROWDED_ANSWER_GOAL_S, INTERRUPTION_GOAL_S = 0.15, 0.35, 0.1
"""Medians; of answers in one conversation, and in several at a time."""
WRITTEN_ANSWER_GOAL_S = 0.9
"""Median of answers that a model writes."""
TRANSCRIPT_GOAL_S = 0.06
"""In one conversation."""
WER_GOAL = 6.0
"""Percent."""


@dataclass(frozen=True, slots=True)
class UserSentence:
    """What a session says."""

    text: str
    pcm: bytes
    """16 bit, mono, `RATE`."""

    @property
    def onset_s(self) -> float:
        """Where the first loud sample is."""
        return float(np.argmax(np.abs(np.frombuffer(self.pcm, "<i2")) > LOUD)) / RATE


@dataclass(slots=True)
class ConversationFigures:
    """Figures of all sessions; times in seconds, one for each turn."""

    answers: list[float] = field(default_factory=list)
    """Seconds from the end of the sound that ended the turn, including the silence that was waited
    for, to the first sound of the answer."""
    interruptions: list[float] = field(default_factory=list)
    """Seconds from the first loud sample of an interruption to the last sound of the answer."""
    transcripts: list[float] = field(default_factory=list)
    """Seconds from the end of a turn to the words that were understood."""
    ends: list[float] = field(default_factory=list)
    """Seconds from the end of a turn to the news of it."""
    writing: list[float] = field(default_factory=list)
    """Seconds from the news to the first of the answer's text: what is left of finding the user's
    words, and reading the conversation."""
    speaking: list[float] = field(default_factory=list)
    """Seconds from there to the first sound: writing as much as is spoken first, and speaking."""
    first_texts: list[int] = field(default_factory=list)
    """Characters that were written when the first sound came."""
    words: int = 0
    """That were spoken."""
    errors: int = 0
    """Wrong, missing and added words in the transcripts."""

    @property
    def wer(self) -> float:
        """Word error rate in percent."""
        return 100 * self.errors / max(self.words, 1)


class _Session:
    """The client of one conversation."""

    def __init__(
        self,
        socket: ClientConnection,
        sentences: Iterator[UserSentence],
        figures: ConversationFigures,
        *,
        may_end: bool,
    ) -> None:
        self._socket = socket
        self._may_end = may_end
        self._sentences = sentences
        self._figures = figures
        self._said: list[str] = []
        self._understood: list[tuple[float, str]] = []
        """Transcripts, and when they came."""
        self._sent_s = 0.0
        """Seconds of sound sent since the session's start."""
        self._sent_at: list[tuple[float, float]] = []
        """When sound up to here had been sent."""
        self._events: asyncio.Queue[tuple[float, dict[str, Any]]] = asyncio.Queue()
        self._rest = b""
        """The rest of the sentence that is being spoken."""

    async def run(self, turns: int) -> None:
        await self._socket.send(json.dumps(SESSION))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._speak()), group.create_task(self._listen())]
            for turn in range(turns + 1):
                onset_s = self._ask()
                if turn:
                    self._figures.interruptions += await self._await_interruption(onset_s)
                await self._await_answer(is_counted=turn < turns)
                await asyncio.sleep(LISTENED_S)
            await self._await_transcript()
            for task in tasks:
                task.cancel()
        self._count_words()

    def _ask(self) -> float:
        """Begin to speak; returns where the first loud sample will be, in sound since the start."""
        sentence = next(self._sentences)
        self._said.append(sentence.text)
        self._rest = sentence.pcm
        return self._sent_s + sentence.onset_s

    async def _await_answer(self, *, is_counted: bool) -> None:
        """Until the first sound; counts where the time went."""
        stopped_at, stopped = await self._receive_event("input_audio_buffer.speech_stopped")
        written_at, written = await self._receive_event("response.output_audio_transcript.delta")
        characters = len(written["delta"])
        async with asyncio.timeout(WAIT_S):
            while True:
                at, event = await self._events.get()
                if event["type"] == "response.output_audio_transcript.delta":
                    characters += len(event["delta"])
                if event["type"] == "response.output_audio.delta":
                    break
        ended_at = self._to_time(stopped["audio_end_ms"] / 1000)
        figures = self._figures
        if is_counted:
            figures.answers.append(at - ended_at)
            figures.ends.append(stopped_at - ended_at)
            figures.writing.append(written_at - stopped_at)
            figures.speaking.append(at - written_at)
            figures.first_texts.append(characters)
        figures.transcripts += [
            max(0.0, came_at - ended_at) for came_at, _ in self._understood[len(self._said) - 1 :]
        ]

    async def _await_interruption(self, onset_s: float) -> list[float]:
        """Until the last sound; none if the answer had ended by itself."""
        last_at = 0.0
        async with asyncio.timeout(WAIT_S):
            while True:
                at, event = await self._events.get()
                if event["type"] == "response.output_audio.delta":
                    last_at = at
                if event["type"] == "response.done":
                    if event["response"]["status"] != "cancelled":
                        assert self._may_end, "the answer was too short"
                        return []
                    # The last sound may have come before anything was said.
                    return [max(0.0, last_at - self._to_time(onset_s))]

    async def _receive_event(self, kind: str) -> tuple[float, dict[str, Any]]:
        async with asyncio.timeout(WAIT_S):
            while True:
                at, event = await self._events.get()
                if event["type"] == kind:
                    return at, event

    async def _await_transcript(self) -> None:
        while len(self._understood) < len(self._said):
            await self._receive_event(TRANSCRIBED)

    def _count_words(self) -> None:
        words, errors = count_errors(
            " ".join(self._said), " ".join(text for _, text in self._understood)
        )
        self._figures.words += words
        self._figures.errors += errors

    def _to_time(self, position_s: float) -> float:
        return next(at for upto_s, at in self._sent_at if upto_s >= position_s - FRAME_S / 2)

    async def _listen(self) -> None:
        async for message in self._socket:
            event = json.loads(message)
            assert event["type"] != "error", event
            if event["type"] == TRANSCRIBED:
                self._understood.append((time.monotonic(), event["transcript"]))
            self._events.put_nowait((time.monotonic(), event))

    async def _speak(self) -> None:
        """A microphone that is always open."""
        size = 2 * round(FRAME_S * RATE)
        started = time.monotonic()
        while True:
            frame, self._rest = self._rest[:size].ljust(size, b"\0"), self._rest[size:]
            audio = base64.b64encode(frame).decode()
            await self._socket.send(
                json.dumps({"type": "input_audio_buffer.append", "audio": audio})
            )
            self._sent_s += FRAME_S
            self._sent_at.append((self._sent_s, time.monotonic()))
            await asyncio.sleep(started + self._sent_s - time.monotonic())


@asynccontextmanager
async def serve_long_answers() -> AsyncIterator[str]:
    """A chat endpoint whose answers are long; its base address."""

    async def pieces() -> AsyncIterator[str]:
        for _ in range(SENTENCES):
            yield f"data: {json.dumps({'choices': [{'delta': {'content': SENTENCE}}]})}\n\n"
        yield "data: [DONE]\n\n"

    async def answer(request: Request) -> StreamingResponse:
        return StreamingResponse(pieces(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    serving = asyncio.create_task(server.serve())
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        await serving


async def _read_sentences(url: str, voice: str) -> list[UserSentence]:
    """What the sessions say, as a voice of the server reads it."""
    spoken = []
    async with httpx.AsyncClient(base_url=url, timeout=WAIT_S) as http:
        for sentence in read_sentences(None)[:SPOKEN]:
            body = {
                "input": sentence.text,
                "voice": voice,
                "response_format": "pcm",
                "sample_rate": RATE,
            }
            answer = (await http.post("/v1/audio/speech", json=body)).raise_for_status()
            spoken.append(UserSentence(sentence.text, answer.content))
    return spoken


async def _hold_conversations(
    url: str, spoken: Sequence[UserSentence], sessions: int, turns: int, *, may_end: bool
) -> ConversationFigures:
    """Sessions at a time, which begin one after the other, each with another sentence."""
    figures = ConversationFigures()
    turn_s = len(spoken[0].pcm) / (2 * RATE) + LISTENED_S + 1

    async def one(number: int) -> None:
        await asyncio.sleep(number * turn_s / sessions)
        address = url.replace("http", "ws", 1) + "/v1/realtime"
        sentences = islice(cycle(spoken), number, None)
        async with connect(address, max_size=None, close_timeout=1) as socket:
            await _Session(socket, sentences, figures, may_end=may_end).run(turns)

    async with asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(one(number))
    return figures


async def measure_realtime(
    model: str | None,
    voice: str,
    sessions: Sequence[int],
    turns: int,
    folder: Path,
    mind: str | None = None,
) -> dict[int, ConversationFigures]:
    """Start a server and hold conversations with it, by numbers of sessions at a time.

    Args:
        model: what is served; None: the embedded models.
        voice: reads what the sessions say.
        sessions: at a time.
        turns: of each session. As many sessions of one turn come before, uncounted: recognizers
            are made when they are needed.
        folder: takes the server's log.
        mind: the model that answers, served beside; None: answers are ready.
    """
    found = {}
    async with serve_long_answers() as chat:
        # All named, so that the server is ready when all are.
        models = [model] if model else list_embedded_models()
        models += [] if mind is None else [mind]
        served = [option for name in models for option in ("--model", name)]
        ready = ["--chat-url", chat, "--chat-model", "ready"] if mind is None else []
        options = [*ready, *served]
        serving = running_server(folder / "realtime.log", options=options)
        server = await asyncio.to_thread(serving.__enter__)
        try:
            spoken = await _read_sentences(server.url, voice)
            for number in sessions:
                may_end = mind is not None
                await _hold_conversations(server.url, spoken, number, 1, may_end=may_end)
                found[number] = await _hold_conversations(
                    server.url, spoken, number, turns, may_end=may_end
                )
        finally:
            await asyncio.to_thread(serving.__exit__, None, None, None)
    return found


def realtime_table(found: dict[int, ConversationFigures], *, ready: bool = True) -> str:
    """Markdown: milliseconds and wrong words, and whether they meet their goals.

    Args:
        ready: whether answers were; else they have a goal of their own.
    """
    lines = ["| sessions | | turns | p50 | p95 | goal |", "|-|-|-|-|-|-|"]
    for sessions, figures in found.items():
        alone = sessions == 1
        answer_goal_s = ANSWER_GOAL_S if alone else CROWDED_ANSWER_GOAL_S
        for name, values_s, goal_s in (
            (
                "end of turn to first sound",
                figures.answers,
                answer_goal_s if ready else WRITTEN_ANSWER_GOAL_S,
            ),
            ("of this, until its end is told", figures.ends, None),
            ("of this, then until the answer's first text", figures.writing, None),
            ("of this, then until its first sound", figures.speaking, None),
            ("end of turn to its words", figures.transcripts, TRANSCRIPT_GOAL_S if alone else None),
            ("barge-in to last sound", figures.interruptions, INTERRUPTION_GOAL_S),
        ):
            if not values_s:
                continue
            p50, p95 = 1000 * np.percentile(np.array(values_s), [50, 95])
            goal = "" if goal_s is None else _judge(p50, 1000 * goal_s, " ms")
            row = (sessions, name, len(values_s), f"{p50:.0f} ms", f"{p95:.0f} ms", goal)
            lines.append(f"| {' | '.join(map(str, row))} |")
        if figures.first_texts:
            p50, p95 = np.percentile(figures.first_texts, [50, 95])
            turns = len(figures.first_texts)
            lines.append(f"| {sessions} | characters by then | {turns} | {p50:.0f} | {p95:.0f} | |")
        goal = _judge(figures.wer, WER_GOAL, "%")
        lines.append(f"| {sessions} | wrong words | | {figures.wer:.1f}% | | {goal} |")
    return "\n".join(lines)


def _judge(value: float, goal: float, unit: str) -> str:
    return f"{'met' if value <= goal else 'missed'} ({goal:g}{unit})"
