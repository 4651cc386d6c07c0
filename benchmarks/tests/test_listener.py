"""What a player would have done with the packets."""

from __future__ import annotations

import numpy as np
import pytest

from cantata_bench.client import build_timeline
from cantata_bench.listener import Listener, heard_at_s, onset_s, underrun_s

RATE = 1000


def sound(samples: int, level: int) -> bytes:
    return np.full(samples, level, dtype="<i2").tobytes()


def test_packets_in_time_leave_no_gap() -> None:
    arrivals = [(0.5, 0.1), (0.59, 0.1), (0.60, 0.2), (0.89, 0.1)]
    assert underrun_s(arrivals, 0.0) == 0
    assert heard_at_s(arrivals) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("reserve_s", "still_s"), [(0.0, 0.15), (0.05, 0.1), (0.1, 0.05), (0.2, 0)]
)
def test_a_reserve_bridges_what_comes_late(reserve_s: float, still_s: float) -> None:
    """0.1 s too late, and 0.05 s more after the player has waited once."""
    arrivals = [(0.5, 0.1), (0.7, 0.1), (0.85, 0.1)]
    assert underrun_s(arrivals, reserve_s) == pytest.approx(still_s)


def test_onset_is_when_the_first_loud_sample_is_played() -> None:
    listener = Listener()
    listener.head(0.1, RATE, 1)
    listener.packet(0.2, sound(100, 3))
    listener.packet(0.4, sound(30, 3) + sound(70, 9000))
    assert listener.onset is not None
    # The second packet comes 0.1 s late.
    assert onset_s(listener.arrivals, listener.onset) == pytest.approx(0.43)


def test_packets_may_be_cut_within_a_sample() -> None:
    data, listener = sound(50, 20000), Listener(keep_sound=True)
    listener.head(0.1, RATE, 1)
    pieces = (data[:33], data[33:34], data[34:])
    lengths = [listener.packet(0.1 * number, piece) for number, piece in enumerate(pieces)]
    assert sum(lengths) == pytest.approx(0.05)
    assert bytes(listener.sound) == data


def test_a_record_has_every_figure_of_a_request() -> None:
    listener = Listener()
    listener.head(0.01, RATE, 2)
    for at_s in (0.02, 0.05, 0.14):
        listener.packet(at_s, sound(100, 9000))
    record = listener.record(3.0, "Hello.", refusals=2)
    assert (record.outcome, record.sent_s, record.characters) == ("spoken", 3.0, 6)
    assert (record.header_s, record.ttfp_s, record.onset_s) == (0.01, 0.02, 0.02)
    assert (record.e2e_s, record.packets, record.refusals) == (0.14, 3, 2)
    assert record.audio_s == pytest.approx(0.15)
    assert record.interval_max_s == pytest.approx(0.09)
    assert record.underruns_s == pytest.approx((0.02, 0, 0, 0))
    assert record.rtf == pytest.approx(0.14 / 0.15)


def test_an_answer_without_sound_has_failed() -> None:
    assert Listener().record(0.0, "Hello.", refusals=0).outcome == "failed"


def test_a_server_timing_header_is_read_in_seconds() -> None:
    header = 'text;dur=4.1, cache, admit;desc="a place";dur=0.6, talker; dur=87'
    assert build_timeline(header) == pytest.approx(
        {"text": 0.0041, "admit": 0.0006, "talker": 0.087}
    )
