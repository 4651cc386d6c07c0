"""Holds one conversation for each case: a question, a long answer, and the case over it."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import soxr
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import ClientConnection, connect

from cantata.config.plugins import list_embedded_models
from cantata.contract.data.errors import ConfigError
from cantata_bench.interruptions.cases import InterruptionCase
from cantata_bench.interruptions.noises import RATE, Sound
from cantata_bench.realtime import FRAME_S, serve_long_answers
from cantata_bench.server import running_server
from cantata_bench.transcription.recordings import ESPEAK, RATE_HZ, read_by_espeak

QUESTION = "Please tell me a long story about the market."
_LISTENED_S = 1.0
"""Seconds of the answer before the case."""
_EAGERNESS, _MAX_S = "high", 2.5
"""Of the turn detection, and more than the silence after which a turn ends in any case."""
_ASKED_EVERY_S = 0.1
_WAIT_S = 180.0
_LOUD = 0.03
"""Level at which sound begins, of full scale."""


_Events = list[tuple[float, dict[str, Any]]]
"""Events, and when they came."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What a case did to the answer."""

    case: InterruptionCase
    recognized_s: float | None
    """Seconds from the first loud sample to the news of speech; None: nothing was told."""
    silent_s: float = 0.0
    """Seconds from the news to the last sound of the answer."""

    @property
    def stopped(self) -> bool:
        """Whether the answer stopped."""
        return self.recognized_s is not None


class SpeechMaker:
    """Makes speech with a server, once for each text and voice."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/v1/audio/speech"
        self._made: dict[tuple[str, str], Sound] = {}

    def say(self, text: str, voice: str) -> Sound:
        """[N] float32 at `RATE`; `voice` as model/voice."""
        if (text, voice) not in self._made:
            model, _, name = voice.partition("/")
            if model == ESPEAK:
                self._made[text, voice] = _say_by_espeak(text)
                return self._made[text, voice]
            body: dict[str, Any] = {"input": text, "model": model, "voice": name}
            body |= {"response_format": "pcm", "sample_rate": RATE, "seed": 0}
            answer = httpx.post(
                self._url, json=body, timeout=_WAIT_S, verify=False
            ).raise_for_status()
            sound = np.frombuffer(answer.content, "<i2").astype(np.float32) / np.float32(32768)
            self._made[text, voice] = sound
        return self._made[text, voice]


def _say_by_espeak(text: str) -> Sound:
    read = read_by_espeak(text)
    if read is None:
        raise ConfigError(f"these cases need {ESPEAK}: apt-get install {ESPEAK}")
    resampled: Sound = soxr.resample(read.sound, RATE_HZ, RATE)
    return resampled


@dataclass(slots=True)
class OpenMicrophone:
    """Always open: silence where nothing is played."""

    socket: ClientConnection
    waiting: Sound = field(default_factory=lambda: np.zeros(0, np.float32))
    sent_s: float = 0.0

    async def run(self) -> None:
        """Send in real time, until cancelled."""
        size = round(FRAME_S * RATE)
        started = time.monotonic()
        while True:
            frame, self.waiting = self.waiting[:size], self.waiting[size:]
            pcm = (np.pad(frame, (0, size - len(frame))) * 32767).astype("<i2").tobytes()
            event = {"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()}
            await self.socket.send(json.dumps(event))
            self.sent_s += FRAME_S
            await asyncio.sleep(started + self.sent_s - time.monotonic())

    def play(self, sound: Sound) -> float:
        """Play next; returns when its first loud sample will be heard."""
        self.waiting = sound
        return time.monotonic() + float(np.argmax(np.abs(sound) > _LOUD)) / RATE


async def _hold_conversation(
    url: str, case: InterruptionCase, question: Sound, sound: Sound, interrupt_on: str
) -> CaseOutcome:
    address = url.replace("http", "ws", 1) + "/v1/realtime"
    detection = {
        "type": "semantic_vad",
        "eagerness": _EAGERNESS,
        "interrupt_on": interrupt_on,
    }
    session = {"type": "realtime", "audio": {"input": {"turn_detection": detection}}}
    # No pings: a busy machine may be late to answer them.
    async with connect(address, max_size=None, close_timeout=1, ping_interval=None) as socket:
        await socket.send(json.dumps({"type": "session.update", "session": session}))
        microphone = OpenMicrophone(socket)
        sending = asyncio.create_task(microphone.run())
        try:
            microphone.play(question)
            await _wait_until(socket, "response.output_audio.delta")
            await _drain(socket, _LISTENED_S)
            loud_at = microphone.play(sound)
            end_s = microphone.sent_s + len(sound) / RATE + _MAX_S
            events: _Events = []
            while not _is_over(events) and microphone.sent_s < end_s:
                events += await _drain(socket, _ASKED_EVERY_S)
            # What was sent before this is judged when it is answered, however busy the machine is.
            await socket.send(json.dumps({"type": "session.update", "session": session}))
            while not _is_over(events) and not _has(events, "session.updated"):
                events += await _drain(socket, _ASKED_EVERY_S)
            while not _is_over(events) and not await asyncio.to_thread(_is_understood, url):
                events += await _drain(socket, _ASKED_EVERY_S)
        finally:
            sending.cancel()
            await asyncio.wait([sending])
    return _judge(case, events, loud_at)


def _has(events: _Events, kind: str) -> bool:
    return any(event["type"] == kind for _, event in events)


def _is_over(events: _Events) -> bool:
    return _has(events, _DONE)


def _is_understood(url: str) -> bool:
    """Whether the server looks for nobody's words: all that was said is decided."""
    # Reading certificates takes a good part of a core, from the server.
    answer = httpx.get(f"{url}/metrics", timeout=_WAIT_S, verify=False)
    families = text_string_to_metric_families(answer.text)
    samples = (sample for family in families for sample in family.samples)
    return not any(one.value for one in samples if one.name == "cantata_realtime_transcriptions")


def _judge(case: InterruptionCase, events: _Events, loud_at: float) -> CaseOutcome:
    times = {kind: [at for at, event in events if event["type"] == kind] for kind in _KINDS}
    if not times[_STARTED]:
        assert not times[_DONE], "the answer was too short"
        return CaseOutcome(case, None)
    started = times[_STARTED][0]
    of_first = [at for at in times[_SOUND] if not times[_DONE] or at <= times[_DONE][0]]
    last = max(of_first, default=started)
    return CaseOutcome(case, started - loud_at, max(0.0, last - started))


_STARTED, _SOUND, _DONE = _KINDS = (
    "input_audio_buffer.speech_started",
    "response.output_audio.delta",
    "response.done",
)


async def _wait_until(socket: ClientConnection, kind: str) -> None:
    async with asyncio.timeout(_WAIT_S):
        while (event := json.loads(await socket.recv()))["type"] != kind:
            assert event["type"] != "error", event


async def _drain(socket: ClientConnection, seconds: float) -> _Events:
    """The events of this time, with when they came."""
    events = []
    try:
        async with asyncio.timeout(seconds):
            while True:
                event = json.loads(await socket.recv())
                assert event["type"] != "error", event
                events.append((time.monotonic(), event))
                if event["type"] == _DONE:
                    return events
    except TimeoutError:
        return events


async def measure_interruptions(
    cases: Sequence[InterruptionCase], interrupt_on: str, sessions: int, folder: Path
) -> list[CaseOutcome]:
    """Start a server and try the cases on it.

    Args:
        cases: to try.
        interrupt_on: the session's setting.
        sessions: conversations at a time.
        folder: takes the server's log.
    """
    async with serve_long_answers() as chat:
        speaking = {case.voice.partition("/")[0] for case in cases} - {ESPEAK}
        names = dict.fromkeys([*list_embedded_models(), *sorted(speaking)])
        models = [option for name in names for option in ("--model", name)]
        options = ["--chat-url", chat, "--chat-model", "ready", *models]
        serving = running_server(folder / "interruptions.log", options=options)
        server = await asyncio.to_thread(serving.__enter__)
        try:
            return await try_cases(server.url, cases, interrupt_on, sessions)
        finally:
            await asyncio.to_thread(serving.__exit__, None, None, None)


async def try_cases(
    url: str, cases: Sequence[InterruptionCase], interrupt_on: str, sessions: int
) -> list[CaseOutcome]:
    """As of `measure_interruptions`, on a server of the embedded models that answers at length."""
    speaker = SpeechMaker(url)
    places = asyncio.Semaphore(sessions)
    # Made before anything is timed.
    sounds = [(await asyncio.to_thread(case.make, speaker.say)) for case in cases]
    questions = [(await asyncio.to_thread(speaker.say, QUESTION, case.voice)) for case in cases]

    async def one(place: int) -> CaseOutcome:
        async with places:
            case = cases[place]
            return await _hold_conversation(
                url, case, questions[place], sounds[place], interrupt_on
            )

    return list(await asyncio.gather(*map(one, range(len(cases)))))
