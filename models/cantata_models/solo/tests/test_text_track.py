"""The text track: durations, speed and the end of an utterance."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cantata_models.solo.checkpoint import load_talker
from cantata_models.solo.networks.text_track import (
    DISTINCT_END_SLOTS,
    DISTINCT_PHONE_SLOTS,
    END_SILENCE_SLOTS,
    SLOTS_PER_FRAME,
    TextTrack,
    slot_places,
    whole_slots,
)
from cantata_models.solo.tests.small_models import SMALL, small_talker
from cantata_models.solo.text.tokens import PHONE_INVENTORY, SIL_ID, phone_ids

HELLO = phone_ids(["SIL", "HH", "AH", "L", "OW", "SIL"])


def speak(speed: float = 1.0, voice: int = 0, question: bool = False) -> TextTrack:
    """Returns the small model's track of "hello"."""
    starts = torch.tensor([False, True, False, False, False, False])
    encoder = small_talker().text_track
    encoder.duration_out.bias.fill_(2.0)
    return encoder.forward_track(
        torch.tensor(HELLO), starts, question, encoder.stock_speakers[voice], speed
    )


def test_rows_and_slots_agree() -> None:
    track = speak()
    assert track.rows.shape == (track.frames, SMALL.talker.hidden_size)
    assert track.rows.dtype == torch.float32
    assert int(track.slots.sum()) == SLOTS_PER_FRAME * track.frames
    assert int(track.slots[-1]) >= END_SILENCE_SLOTS


@pytest.mark.parametrize("cuts", [[1], [8], [3, 4, 20]])
def test_rows_made_in_parts_are_those_made_at_once(cuts: list[int]) -> None:
    encoder = load_talker().text_track
    phones = torch.tensor(HELLO * 8)
    plan = encoder.plan(phones, phones == HELLO[1], False, encoder.stock_speakers[0])
    edges = [0, *cuts, plan.frames]
    assert edges == sorted(set(edges))
    parts = [encoder.make_rows(plan, *part) for part in pairwise(edges)]
    assert torch.equal(torch.cat(parts), encoder.make_rows(plan, 0, plan.frames))


def test_voice_and_question_change_the_track() -> None:
    assert not torch.equal(speak().rows, speak(voice=1).rows)
    assert not torch.equal(speak().rows, speak(question=True).rows)


def test_speed_scales_durations() -> None:
    def spoken(speed: float) -> int:
        return int(speak(speed).slots[:-1].sum())

    assert spoken(0.5) == pytest.approx(2 * spoken(1.0), abs=2)
    assert spoken(2.0) == pytest.approx(spoken(1.0) / 2, abs=2)


@pytest.mark.parametrize("speed", [0.0, 0.49, 2.01, float("nan")])
def test_speed_outside_the_range_is_rejected(speed: float) -> None:
    with pytest.raises(ValueError, match="speed must be within"):
        speak(speed)


def test_unequal_lengths_are_rejected() -> None:
    encoder = small_talker().text_track
    with pytest.raises(ValueError, match="equally long"):
        encoder.forward_track(
            torch.tensor(HELLO), torch.tensor([True]), False, encoder.stock_speakers[0]
        )


@given(
    durations=st.lists(st.floats(0, 30), min_size=1, max_size=40),
    silences=st.lists(st.booleans(), min_size=40, max_size=40),
    speed=st.floats(0.5, 2.0),
)
def test_slots_fill_whole_frames(
    durations: list[float], silences: list[bool], speed: float
) -> None:
    logs = torch.log(torch.tensor(durations) + 1)
    phones = torch.where(torch.tensor(silences[: len(durations)]), SIL_ID, 0)
    slots = whole_slots(logs, phones, speed)
    assert int(slots.sum()) % SLOTS_PER_FRAME == 0
    assert int(slots.sum()) > 0
    assert bool((slots[phones != SIL_ID] >= 1).all())
    if phones[-1] == SIL_ID:
        assert int(slots[-1]) >= END_SILENCE_SLOTS


def test_distinct_speech_gives_time_of_long_phones_and_pauses_to_short_ones() -> None:
    sil, phones = SIL_ID, [0] * 6
    lengths = torch.tensor([2.0, 1.0, 8.0, 2.0, 12.0, 1.5, 6.0, 9.0])
    ids = torch.tensor([sil, *phones, sil])
    usual = whole_slots(torch.log(lengths + 1), ids, 1.0)
    distinct = whole_slots(torch.log(lengths + 1), ids, 1.0, distinct=True)
    assert int(distinct.sum()) == int(usual.sum())
    assert int(usual[1:-1].min()) < DISTINCT_PHONE_SLOTS == int(distinct[1:-1].min())
    assert int(distinct[1:-1].sum()) > int(usual[1:-1].sum())
    assert int(distinct[0]) == int(usual[0]) // 2
    assert DISTINCT_END_SLOTS <= int(distinct[-1]) <= DISTINCT_END_SLOTS + 2


@given(
    durations=st.lists(st.floats(0, 30), min_size=1, max_size=40),
    silences=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_distinct_speech_is_never_shorter(durations: list[float], silences: list[bool]) -> None:
    logs = torch.log(torch.tensor(durations) + 1)
    phones = torch.where(torch.tensor(silences[: len(durations)]), SIL_ID, 0)
    usual = whole_slots(logs, phones, 1.0)
    distinct = whole_slots(logs, phones, 1.0, distinct=True)
    assert int(distinct.sum()) % SLOTS_PER_FRAME == 0
    assert int(distinct.sum()) >= int(usual.sum())
    assert bool((distinct[phones != SIL_ID] >= DISTINCT_PHONE_SLOTS - 1).all())


def test_slot_places_run_through_each_phone() -> None:
    places = slot_places(torch.tensor([2, 0, 4]))
    assert places[:, 0].tolist() == pytest.approx([0.25, 0.75, 0.125, 0.375, 0.625, 0.875])
    assert places.sum(dim=1).tolist() == pytest.approx([1.2] * 2 + [1.4] * 4)


def test_unknown_phone_is_named() -> None:
    assert len(PHONE_INVENTORY) == 40
    with pytest.raises(ValueError, match="unknown phone 'XX'"):
        phone_ids(["AA", "XX"])
