"""Answers that come back by the microphone are recognized; whoever speaks over them is heard."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from numpy.typing import NDArray

from cantata.audio.pcm import to_s16
from cantata.speech_input.echo import EchoAwareJudge, EchoFilter, SentSound
from cantata.speech_input.sound import HEARD_RATE
from cantata.speech_input.vad import WINDOW, SileroJudge

VOICES = Path(__file__).parents[4] / "docs" / "voice"
ANSWER_RATE = 24_000
AHEAD_S = 5.0
"""Sound is sent so far ahead of a listener."""
THRESHOLD = 0.5
ECHO = 0.1
"""20 dB below the answer."""

Signal = NDArray[np.float32]


@cache
def recording(voice: str, rate: int) -> Signal:
    sound, own = soundfile.read(VOICES / f"{voice}.mp3", dtype="float32")
    return np.asarray(soxr.resample(sound, own, rate), np.float32)


def echo_of(answer: Signal, delay_s: float, room: int = 0, noise_db: float = -70.0) -> Signal:
    """What a microphone gets of an answer: later, quieter, with a decaying room of so many samples,
    and with noise."""
    random = np.random.default_rng(7)
    response = np.zeros(room + 1)
    response[0] = 1.0
    decay = np.exp(-4 * np.arange(room) / max(room, 1))
    response[1:] = 0.1 * random.standard_normal(room) * decay
    sound = np.convolve(soxr.resample(answer, ANSWER_RATE, HEARD_RATE), response) * ECHO
    whole = np.concatenate([np.zeros(round(delay_s * HEARD_RATE)), sound, np.zeros(HEARD_RATE)])
    noise = random.standard_normal(len(whole)) * 10 ** (noise_db / 20)
    return np.asarray(whole + noise, np.float32)


class Call:
    """A server's side of a call, by a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.sent = SentSound(ANSWER_RATE, lambda: self.now)
        self.judge = EchoAwareJudge(SileroJudge(), EchoFilter(self.sent, lambda: self.now))

    def listen(
        self, answer: Signal, microphone: Signal, at_once: Callable[[float], None] | None = None
    ) -> NDArray[np.bool_]:
        """Whether each window of the microphone is speech, while the answer is sent ahead."""
        sound = to_s16(microphone)
        begun, sent, found = self.now, 0, []
        for end in range(WINDOW, len(sound), WINDOW):
            elapsed = self.now - begun
            while sent < len(answer) and sent / ANSWER_RATE < elapsed + AHEAD_S:
                self.sent.add(answer[sent : sent + ANSWER_RATE // 5, None])
                sent += ANSWER_RATE // 5
            self.now = begun + end / HEARD_RATE
            if at_once is not None:
                at_once(elapsed)
            found.append(self.judge.compute_probability(sound[end - WINDOW : end]) >= THRESHOLD)
        return np.array(found)


def alone(microphone: Signal) -> NDArray[np.bool_]:
    """What the network says of it."""
    judge, sound = SileroJudge(), to_s16(microphone)
    ends = range(WINDOW, len(sound), WINDOW)
    return np.array([judge.compute_probability(sound[e - WINDOW : e]) >= THRESHOLD for e in ends])


def onsets(speech: NDArray[np.bool_]) -> int:
    """Pairs of windows, each of which would begin a turn."""
    return int(np.count_nonzero(speech[1:] & speech[:-1]))


@pytest.mark.parametrize("delay_s", [0.0, 0.12, 0.7, 1.8])
def test_an_echo_begins_no_turn_however_late_it_comes(delay_s: float) -> None:
    answer = np.concatenate([recording("clara", ANSWER_RATE), recording("ruby", ANSWER_RATE)])
    microphone = echo_of(answer, delay_s)
    assert onsets(alone(microphone)) > 100, "the network hears it well"
    assert onsets(Call().listen(answer, microphone)) == 0


@pytest.mark.parametrize(("room", "noise_db"), [(800, -70.0), (2400, -70.0), (0, -55.0)])
def test_nearly_all_of_an_echo_in_a_room_or_in_noise_is_recognized(
    room: int, noise_db: float
) -> None:
    answer = np.tile(recording("clara", ANSWER_RATE), 2)
    microphone = echo_of(answer, 0.2, room, noise_db)
    assert onsets(Call().listen(answer, microphone)) < 0.05 * onsets(alone(microphone))


def test_a_speaker_over_an_echo_is_heard() -> None:
    answer = np.tile(recording("clara", ANSWER_RATE), 2)
    microphone, user = echo_of(answer, 0.2), recording("ben", HEARD_RATE)
    start = 2 * HEARD_RATE
    microphone[start : start + len(user)] += user
    part = slice(start // WINDOW, (start + len(user)) // WINDOW)
    found = Call().listen(answer, microphone)
    both = np.concatenate([np.zeros(start, np.float32), user])
    expected = alone(np.pad(both, (0, len(microphone) - len(both))))
    kept = np.count_nonzero(found[part] & expected[part]) / np.count_nonzero(expected[part])
    assert kept > 0.8, "where the speaker pauses, the echo may be known"
    assert onsets(found[: part.start]) == 0
    assert onsets(found[part.stop + 8 :]) < 0.1 * onsets(alone(microphone)[part.stop + 8 :])


def test_another_sound_than_the_answer_is_no_echo() -> None:
    answer = recording("clara", ANSWER_RATE)
    microphone = ECHO * recording("ben", HEARD_RATE)
    assert np.array_equal(Call().listen(answer, microphone), alone(microphone))


def test_the_next_answer_after_a_cut_is_recognized_where_it_is_played() -> None:
    """The first was cut with seconds of it unplayed: the next is played at once."""
    call, first, second = Call(), recording("clara", ANSWER_RATE), recording("ruby", ANSWER_RATE)
    played = echo_of(first[:ANSWER_RATE], 0.2)
    assert onsets(call.listen(first, played[:HEARD_RATE])) == 0
    call.sent.cut()
    assert onsets(call.listen(second, echo_of(second, 0.2))) == 0


def test_where_nothing_is_played_nothing_is_compared() -> None:
    call, user = Call(), recording("ben", HEARD_RATE)
    nothing = np.zeros(0, np.float32)
    assert np.array_equal(call.listen(nothing, user), alone(user))
