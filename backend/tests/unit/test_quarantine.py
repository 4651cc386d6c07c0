"""A request that ends a stage twice is quarantined, and no other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.contract.data.errors import Quarantined
from cantata.scheduling.quarantine import LEEWAY_FRAMES, CrashRecord, Quarantine, hash_content

POISON, A, B = (hash_content(name) for name in ("poison", "a", "b"))


def test_the_second_death_with_the_same_request_finds_it() -> None:
    quarantine = Quarantine()
    assert not quarantine
    assert quarantine.record_death("talker", {POISON: 0, A: 40, B: 7}) is None
    quarantine.check(POISON)
    assert quarantine.record_death("talker", {POISON: 1, A: 3}) == POISON
    assert quarantine.total == 1
    with pytest.raises(Quarantined, match="talker") as refusal:
        quarantine.check(POISON)
    assert (refusal.value.code, refusal.value.param) == ("quarantined", "input")
    quarantine.check(A)
    quarantine.check(B)


def test_who_got_further_in_between_is_no_suspect() -> None:
    quarantine = Quarantine()
    quarantine.record_death("talker", {A: 0})
    quarantine.clear(A)
    assert quarantine.record_death("talker", {A: 0}) is None


def test_who_was_alone_with_both_deaths_did_it_wherever_they_came() -> None:
    quarantine = Quarantine()
    quarantine.record_death("talker", {POISON: 0})
    assert quarantine.record_death("talker", {POISON: 500}) == POISON


def test_who_was_not_alone_must_have_been_at_the_same_place() -> None:
    """Of requests that cannot be told apart, any may be the cause."""
    quarantine = Quarantine(leeway=100)
    quarantine.record_death("replica", {A: 0}, others=1)
    assert quarantine.record_death("replica", {A: 500}, others=1) is None
    assert quarantine.record_death("replica", {A: 450}, others=1) == A


def test_two_suspects_at_the_same_place_are_both_let_off() -> None:
    """Until the next death, before which they run one at a time."""
    quarantine = Quarantine()
    quarantine.record_death("talker", {POISON: 5, A: 5})
    assert quarantine.record_death("talker", {POISON: 5, A: 5}) is None
    assert quarantine.crash_record(A) == CrashRecord("talker", 5)
    quarantine.clear(A)
    assert quarantine.record_death("talker", {POISON: 5, B: 5}) == POISON


def test_deaths_of_different_stages_are_no_evidence() -> None:
    quarantine = Quarantine()
    quarantine.record_death("talker", {A: 0})
    assert quarantine.record_death("decoder", {A: 0}) is None


def test_a_strike_is_passed_a_little_beyond_it() -> None:
    quarantine = Quarantine()
    quarantine.record_death("talker", {A: 10})
    assert not quarantine.has_passed(A, 10 + LEEWAY_FRAMES)
    assert quarantine.has_passed(A, 11 + LEEWAY_FRAMES)


def test_what_is_kept_is_bounded() -> None:
    quarantine = Quarantine()
    for number in range(3000):
        quarantine.record_death("talker", {hash_content(number): 0})
    assert len(quarantine._crash_records) == 1024


@dataclass(frozen=True)
class EncodedMessage:
    text: tuple[int, ...] = (1, 2)
    audio: NDArray[Any] = field(default_factory=lambda: np.zeros(2000, np.float32))
    seed: int = 1


def loud_in_the_middle() -> NDArray[np.float32]:
    audio = np.zeros(2000, np.float32)
    audio[1000] = 1
    return audio


@pytest.mark.parametrize(
    "other",
    [
        {"talker": EncodedMessage(seed=2)},
        {"talker": EncodedMessage(audio=np.zeros(2000, np.float64))},
        {"talker": EncodedMessage(audio=loud_in_the_middle())},
        {"talker": EncodedMessage(text=(12,))},
        {"decoder": EncodedMessage()},
    ],
)
def test_a_digest_tells_requests_apart_by_all_their_content(other: object) -> None:
    inputs = {"talker": EncodedMessage(), "codec": EncodedMessage(seed=3)}
    again = {"codec": EncodedMessage(seed=3), "talker": EncodedMessage()}
    assert hash_content(inputs) == hash_content(again)
    assert hash_content({"talker": EncodedMessage()}) != hash_content(other)
