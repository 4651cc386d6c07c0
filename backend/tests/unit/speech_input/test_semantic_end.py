"""When a pause ends a turn, by given judgements of the speaker; and by Smart Turn on speech."""

from __future__ import annotations

import numpy as np
import pytest

from cantata.speech_input.semantic_end import HEARD_S, PATIENCE, Eagerness, Patience, SemanticEnd
from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.turns import SpeechStopped, TurnDetector
from cantata.speech_input.vad import WINDOW

LOOK_WINDOWS = 7
"""The first whole ones that hold 200 ms."""
WAIT_WINDOWS = 63
"""Those that hold 2 s."""
SPEECH = 10
USUAL = Patience(0.5, 2000)


class Judge:
    """Gives the judgements that it was given, and keeps what it was shown."""

    def __init__(self, *judgements: float) -> None:
        self._next = iter(judgements)
        self.shown: list[Heard] = []

    async def finished(self, sound: Heard) -> float:
        self.shown.append(sound)
        return next(self._next)


class Speech:
    """Speech in these windows alone."""

    def __init__(self, *spoken: range) -> None:
        self._spoken = spoken
        self._at = -1

    def compute_probability(self, window: Heard) -> float:
        self._at += 1
        return float(any(self._at in one for one in self._spoken))


async def stops(judge: Judge, *spoken: range, patience: Patience = USUAL) -> list[int]:
    """The windows after which a turn ended. Each window holds its number."""
    end = SemanticEnd(judge.finished, patience)
    detector = TurnDetector(Speech(*spoken), 0.5, end, 60)
    windows = spoken[-1].stop + 2 * WAIT_WINDOWS
    sound = np.repeat(np.arange(windows, dtype=np.int16), WINDOW)
    return [t.at // WINDOW for t in await detector.feed(sound) if isinstance(t, SpeechStopped)]


async def test_who_has_finished_is_answered_soon_and_others_after_the_longest_wait() -> None:
    spoken = range(SPEECH)
    assert await stops(Judge(0.6), spoken) == [SPEECH + LOOK_WINDOWS]
    assert await stops(Judge(0.4), spoken) == [SPEECH + WAIT_WINDOWS]
    assert await stops(Judge(0.4), spoken, patience=Patience(0.4, 2000)) == [SPEECH + LOOK_WINDOWS]


async def test_each_pause_is_judged_once_by_all_that_was_said() -> None:
    judge = Judge(0.1, 0.9)
    short = LOOK_WINDOWS + 3
    found = await stops(judge, range(20, 30), range(30 + short, 40 + short))
    assert found == [40 + short + LOOK_WINDOWS]
    first, second = (sound[::WINDOW].tolist() for sound in judge.shown)
    # Half a second from before the speech, which it took two windows to notice.
    assert first == list(range(22 - 15, 30 + LOOK_WINDOWS))
    assert second == list(range(22 - 15, 40 + short + LOOK_WINDOWS))


async def test_a_pause_shorter_than_a_breath_is_not_judged() -> None:
    judge = Judge(0.9)
    await stops(judge, range(10), range(10 + LOOK_WINDOWS - 1, 30))
    assert len(judge.shown) == 1


async def test_of_a_long_turn_the_end_is_judged_and_of_the_next_one_nothing_of_it() -> None:
    judge = Judge(0.9, 0.9)
    second = range(400, 410)
    await stops(judge, range(300), second)
    windows = HEARD_S * HEARD_RATE // WINDOW
    assert len(judge.shown[0]) == windows * WINDOW
    assert judge.shown[1][0] == second.start + 2 - 15


@pytest.mark.parametrize(("eager", "patient"), [("high", "medium"), ("medium", "low")])
def test_the_eager_wait_for_less_and_shorter(eager: Eagerness, patient: Eagerness) -> None:
    assert PATIENCE[eager].threshold < PATIENCE[patient].threshold
    assert PATIENCE[eager].longest_ms < PATIENCE[patient].longest_ms
    assert PATIENCE["auto"] == PATIENCE["medium"]
