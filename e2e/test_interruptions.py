"""What people do while the server speaks, with real voices and ears: words stop the answer, coughs
and "mm-hm" do not, and the server does not hear itself."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect

from cantata.speech_input.semantic_end import PATIENCE, weights
from cantata.speech_input.sound import SoundInput
from cantata.speech_input.vad import WINDOW, SileroJudge
from cantata_bench.interruptions.cases import HELD_OUT, InterruptionCase
from cantata_bench.interruptions.noises import RATE, Sound
from cantata_bench.interruptions.run import SpeechMaker

from .conftest import SHIPPED
from .server import Server, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.level1]

QUESTION = (
    "Please repeat after me, slowly and carefully: in the morning the baker puts fresh bread in "
    "the window, and the children who walk along the river can smell it."
)
STOP = "Stop, stop, that is enough."
TRIED = [case for case in HELD_OUT if case.voice.startswith(SHIPPED)][::3]
"""Words, a voice and noises that the rule was not found on."""
PAUSE = np.zeros(round(RATE * (PATIENCE["high"].longest_ms / 1000 + 0.3)), np.float32)
"""Ends any turn."""
FRAME = RATE // 50
ECHO = np.float32(0.1)
"""20 dB below the answer."""
FREE_S = 60.0
WAIT_S = 180.0
STARTED, SOUND = "input_audio_buffer.speech_started", "response.output_audio.delta"


@dataclass
class Session:
    """One conversation."""

    socket: ClientConnection
    sent: list[Sound] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    async def configure(self, detection: dict[str, Any]) -> None:
        audio = {"input": {"turn_detection": detection}}
        await self._send("session.update", session={"type": "realtime", "audio": audio})
        await self.until("session.updated")

    async def say(self, *sounds: Sound) -> float:
        """Send at once; returns where the first begins, in ms of all sound."""
        begin_ms = sum(map(len, self.sent)) * 1000 / RATE
        for sound in sounds:
            self.sent.append(sound)
            pcm = (sound * 32767).astype("<i2").tobytes()
            for start in range(0, len(pcm), RATE):
                audio = base64.b64encode(pcm[start : start + RATE]).decode()
                await self._send("input_audio_buffer.append", audio=audio)
        return begin_ms

    async def until(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_S):
            while (event := await self.receive())["type"] != kind:
                pass
        return event

    async def receive(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(await self.socket.recv())
        assert event["type"] != "error", event
        self.events.append(event)
        return event

    async def _send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))


def address(server: Server) -> str:
    return server.url.replace("http", "ws", 1) + "/v1/realtime?model=gpt-realtime"


async def started_ms(server: Server, speaker: SpeechMaker, case: InterruptionCase) -> float:
    """Where the first speech that the server tells of begins, in ms from the case's beginning; a
    case that passes is followed by words that stop the answer."""
    async with connect(address(server), max_size=None, ping_interval=None) as socket:
        session = Session(socket)
        await session.configure({"type": "semantic_vad", "eagerness": "high"})
        await session.say(speaker.say(QUESTION, case.voice), PAUSE)
        await session.until(SOUND)
        begin_ms = await session.say(case.make(speaker.say), PAUSE)
        if not case.stops:
            await session.say(speaker.say(STOP, case.voice), PAUSE)
        started = await session.until(STARTED)
    return float(started["audio_start_ms"]) - begin_ms


@pytest.mark.thorough(every=3)
@pytest.mark.skipif(weights() is None, reason="smart-turn is not installed")
@pytest.mark.parametrize("case", TRIED, ids=lambda case: f"{case.voice}: {case.what}")
def test_only_what_means_to_stop_an_answer_is_told_of(
    server: Server, case: InterruptionCase
) -> None:
    speaker = SpeechMaker(server.url)
    at_ms = asyncio.run(started_ms(server, speaker, case))
    own_ms = len(case.make(speaker.say)) * 1000 / RATE
    if case.stops:
        assert at_ms < own_ms
    else:
        assert at_ms > own_ms, "only the words after it were told of"
    wait_until(server.is_idle, FREE_S, "everything free again")


@dataclass
class Loudspeaker:
    """Plays what a session gets, beside its microphone."""

    waiting: Sound = field(default_factory=lambda: np.zeros(0, np.float32))
    heard: list[Sound] = field(default_factory=list)

    def take(self, event: dict[str, Any]) -> None:
        pcm = np.frombuffer(base64.b64decode(event["delta"]), "<i2")
        self.waiting = np.concatenate([self.waiting, pcm.astype(np.float32) / np.float32(32768)])

    def frame(self) -> Sound:
        played, self.waiting = self.waiting[:FRAME], self.waiting[FRAME:]
        self.heard.append(ECHO * np.pad(played, (0, FRAME - len(played))))
        return self.heard[-1]


async def hear_itself(session: Session, loudspeaker: Loudspeaker) -> None:
    """Until the answer has been played: what is played comes back, in real time."""
    begun, frames, is_done = time.monotonic(), 0, False

    async def receive() -> None:
        nonlocal is_done
        while not is_done:
            event = await session.receive()
            if event["type"] == SOUND:
                loudspeaker.take(event)
            is_done = event["type"] == "response.done"

    async with asyncio.TaskGroup() as group:
        group.create_task(receive())
        while not is_done or len(loudspeaker.waiting):
            await session.say(loudspeaker.frame())
            frames += 1
            await asyncio.sleep(begun + frames * FRAME / RATE - time.monotonic())


def onsets(sound: Sound) -> int:
    """Pairs of windows that the network alone takes for speech."""
    judge, converter = SileroJudge(), SoundInput("pcm", RATE)
    heard = converter.feed((sound * 32767).astype("<i2").tobytes())
    ends = range(WINDOW, len(heard), WINDOW)
    speech = np.array([judge.compute_probability(heard[end - WINDOW : end]) > 0.5 for end in ends])
    return int(np.count_nonzero(speech[1:] & speech[:-1]))


@pytest.mark.thorough
def test_the_server_does_not_hear_its_own_answer(server: Server) -> None:
    """With the detection that any speech interrupts. Words after the answer are heard."""
    loudspeaker, speaker, voice = Loudspeaker(), SpeechMaker(server.url), TRIED[0].voice

    async def talk() -> tuple[list[dict[str, Any]], float, float]:
        async with connect(address(server), max_size=None, ping_interval=None) as socket:
            session = Session(socket)
            await session.configure({"type": "server_vad", "interrupt_on": "speech"})
            await session.say(speaker.say(QUESTION, voice), PAUSE)
            loudspeaker.take(await session.until(SOUND))
            session.events.clear()
            await hear_itself(session, loudspeaker)
            of_answer = list(session.events)
            begin_ms = await session.say(speaker.say(STOP, voice), PAUSE)
            started = await session.until(STARTED)
            return of_answer, begin_ms, started["audio_start_ms"]

    of_answer, begin_ms, started_at_ms = asyncio.run(talk())
    assert STARTED not in {event["type"] for event in of_answer}
    assert of_answer[-1]["response"]["status"] == "completed"
    assert started_at_ms > begin_ms - 400, "the padding comes before the speech"
    assert onsets(np.concatenate(loudspeaker.heard)) > 20, "the network hears the echo"
    wait_until(server.is_idle, FREE_S, "everything free again")
