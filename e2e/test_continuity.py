"""Is a stream that repeats or drops a chunk detected? The server has injected faults to check.

A count of samples does not detect it: what a faulty server sends is played to the last sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page

from .continuity import Fault, Kind, first_fault
from .own_server import OwnServer
from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

TEXT = "Hello."


@pytest.fixture
def speech_page(browser_page: Page, own_server: OwnServer) -> Iterator[SpeechPage]:
    speech_page = SpeechPage(browser_page)
    own_server.open(speech_page)
    yield speech_page
    own_server.order("")


def hear(speech_page: SpeechPage) -> NDArray[np.int16]:
    speech_page.write(TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    played = speech_page.played()
    assert speech_page.metrics()["server"]["samples"] == len(played)
    return played


def collect_sound(server: Server, speech_page: SpeechPage) -> NDArray[np.int16]:
    answer = server.speech(input=TEXT, response_format="pcm", **speech_page.chosen())
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, dtype="<i2")


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("", None),
        ("replay", Kind.REPLAYED),
        ("skip", Kind.SKIPPED),
        ("cumulate", Kind.REPLAYED),
    ],
)
def test_a_broken_stream_is_heard_as_such(
    speech_page: SpeechPage,
    own_server: OwnServer,
    figures: Callable[..., None],
    fault: str,
    kind: Kind | None,
) -> None:
    sound = collect_sound(own_server.server, speech_page)
    own_server.order(fault)
    heard = first_fault(hear(speech_page), sound)
    verdict = "whole" if heard is None else f"{heard.samples} samples {heard.kind} at {heard.at}"
    figures(test="broken stream", what=f"told to {fault or 'be sound'}", heard=verdict)
    assert (heard and heard.kind) == kind
    assert heard is None or heard.samples > 0


def test_a_changed_sample_and_a_missing_end_are_heard() -> None:
    sound = np.random.default_rng(5).integers(-9_000, 9_000, 24_000, dtype=np.int16)
    changed = sound.copy()
    changed[700] += 1
    assert first_fault(changed, sound) == Fault(Kind.CHANGED, 700, 0)
    assert first_fault(sound[:20_000], sound) == Fault(Kind.SKIPPED, 20_000, 4_000)
    assert first_fault(sound, sound) is None
