"""What is played of answers, packet by packet."""

from __future__ import annotations

import numpy as np

from cantata.api.realtime.calls.playout import FRAME_SAMPLES, PLAYOUT_RATE, Playout
from cantata.api.realtime.output_audio import HeardAnswer
from cantata.api.realtime.server_events import PlayoutEvent

PACKET = 2 * FRAME_SAMPLES
SILENCE = bytes(PACKET)


class Player:
    """A playout, and what it told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.playout = Playout(self._record)

    def answer(self, name: str, packets: float, *, whole: bool = True) -> None:
        self.playout.begin(f"resp_{name}", f"item_{name}")
        self.playout.feed(b"\1\1" * int(packets * FRAME_SAMPLES))
        if whole:
            self.playout.end()

    def take(self, packets: int) -> list[bytes]:
        return [self.playout.take() for _ in range(packets)]

    def _record(self, event: PlayoutEvent) -> None:
        self.told.append((event.type.partition(".")[2], event.response_id))


def test_an_answer_begins_and_ends_with_its_sound() -> None:
    p = Player()
    assert p.take(2) == [SILENCE] * 2
    p.answer("a", 2.5)
    assert p.playout.playing
    sound = b"".join(p.take(3))
    assert sound.rstrip(b"\0") == b"\1" * int(2.5 * PACKET)
    assert p.told == [("started", "resp_a"), ("stopped", "resp_a")]
    assert p.take(1) == [SILENCE]
    assert not p.playout.playing


def test_sound_that_comes_late_leaves_a_silence_and_no_second_start() -> None:
    p = Player()
    p.answer("a", 1.5, whole=False)
    assert p.take(2)[1] == SILENCE, "half a packet waits for the rest"
    p.playout.feed(b"\1\1" * FRAME_SAMPLES)
    p.playout.end()
    assert SILENCE not in p.take(2)
    assert p.told == [("started", "resp_a"), ("stopped", "resp_a")]


def test_an_answer_that_ends_after_its_last_packet_has_stopped() -> None:
    p = Player()
    p.answer("a", 1, whole=False)
    p.take(1)
    p.playout.end()
    assert p.take(1) == [SILENCE]
    assert p.told[-1] == ("stopped", "resp_a")


def test_the_packet_after_a_clear_is_silent_and_what_was_heard_is_known() -> None:
    p = Player()
    p.answer("a", 10)
    p.answer("b", 10, whole=False)
    p.take(4)
    assert p.playout.clear() == [
        HeardAnswer("item_a", 4 * FRAME_SAMPLES / PLAYOUT_RATE),
        HeardAnswer("item_b", 0.0),
    ]
    p.playout.feed(b"\1\1" * FRAME_SAMPLES)  # made before it knew
    p.playout.end()
    assert p.take(1) == [SILENCE]
    assert p.told == [("started", "resp_a"), ("cleared", "resp_a")]
    assert p.playout.clear() == []
    p.answer("c", 1)
    assert p.take(1) != [SILENCE]


def test_a_held_answer_fades_and_comes_back_at_the_sample_where_it_stopped() -> None:
    p = Player()
    ramp = (np.arange(8 * FRAME_SAMPLES) + 1000).astype("<i2")
    p.playout.begin("resp_a", "item_a")
    p.playout.feed(ramp.tobytes())
    p.playout.end()
    heard: list[bytes] = []
    p.playout.on_played = heard.append
    before = p.take(3)
    p.playout.pause()
    p.playout.pause()
    falling, *held = p.take(5)
    assert held == [SILENCE] * 4
    p.playout.resume()
    rising, *after = p.take(5)
    third = ramp[3 * FRAME_SAMPLES : 4 * FRAME_SAMPLES].astype(int)
    down, up = (np.frombuffer(one, "<i2").astype(int) for one in (falling, rising))
    assert (down[0], down[-1]) == (third[0], 0)
    assert (up[0], up[-1]) == (0, third[-1])
    assert np.abs(down + up - third).max() <= 2, "together the packet at which it stopped"
    assert b"".join(before) == ramp[: 3 * FRAME_SAMPLES].tobytes()
    assert b"".join(after) == ramp[4 * FRAME_SAMPLES :].tobytes()
    assert heard == [*before, falling, rising, *after], "an echo of the fades is one, too"
    assert p.told == [("started", "resp_a"), ("stopped", "resp_a")]


def test_what_was_held_may_be_cleared_and_counts_as_far_as_it_was_heard() -> None:
    p = Player()
    p.answer("a", 10)
    p.take(3)
    p.playout.pause()
    p.take(5)
    assert p.playout.clear() == [HeardAnswer("item_a", 3 * FRAME_SAMPLES / PLAYOUT_RATE)]
    p.answer("b", 2)
    assert p.take(1) == [b"\1" * PACKET], "neither held nor fading"


def test_an_answer_is_not_held_for_ever() -> None:
    p = Player()
    p.answer("a", 10)
    p.take(3)
    p.playout.pause()
    packets = p.take(1000)
    p.playout.pause()  # whoever still speaks is not waited for again
    assert len([one for one in packets if one != SILENCE]) == 1 + 7
    assert packets[1:].index(SILENCE) == 0
    assert not p.playout.playing
    assert p.told[-1] == ("stopped", "resp_a")


def test_an_answer_does_not_begin_while_it_is_held() -> None:
    p = Player()
    p.playout.pause()
    p.answer("a", 1)
    assert p.take(3) == [SILENCE] * 3
    assert not p.told
    p.playout.resume()
    assert p.take(1) == [b"\1" * PACKET]


def test_answers_without_sound_tell_nothing() -> None:
    p = Player()
    p.answer("a", 0)
    p.answer("b", 1)
    p.take(1)
    assert p.told == [("started", "resp_b"), ("stopped", "resp_b")]
