"""What a late reader finds of a picture: every word, the latest progress, and then the picture.

Behind them is a mailbox: the latest message, and errors after it.
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.pipeline.drawing_events import Mailbox, PendingImageEvents, drain

NOTHING = np.zeros((0, 0, 3), np.uint8)
PREVIEW = np.ones((2, 2, 3), np.uint8)


def progress(step: int, pixels: np.ndarray = NOTHING) -> Progress:
    return Progress(pixels, step, 9)


async def test_a_late_reader_misses_no_word() -> None:
    mailbox: Mailbox[PendingImageEvents] = Mailbox(PendingImageEvents.merge)
    events = drain(mailbox)
    mailbox.put(PendingImageEvents.of(Thought("A ", 1)))
    mailbox.put(PendingImageEvents.of(progress(1)))
    mailbox.put(PendingImageEvents.of(Thought("house", 2)))
    mailbox.put(PendingImageEvents.of(progress(2)))
    assert [await anext(events), await anext(events)] == [Thought("A house", 3), progress(2)]
    mailbox.put(PendingImageEvents.of(Thought(".", 1)))
    mailbox.put(PendingImageEvents.of(progress(3)))
    picture = Image(PREVIEW)
    mailbox.put(PendingImageEvents.of(picture))
    assert [event async for event in events] == [Thought(".", 1), picture]


def test_a_preview_stays_until_there_is_another() -> None:
    seen = PendingImageEvents.of(progress(3, PREVIEW)).merge(PendingImageEvents.of(progress(4)))
    assert seen.progress is not None
    assert (seen.progress.step, seen.progress.pixels.shape) == (4, (2, 2, 3))
    later = seen.merge(PendingImageEvents.of(progress(5, PREVIEW + 1)))
    assert later.progress is not None
    np.testing.assert_array_equal(later.progress.pixels, PREVIEW + 1)


def joined(before: str, after: str) -> str:
    return f"{before}+{after}"


async def test_what_was_not_taken_is_combined_with_what_follows() -> None:
    mailbox = Mailbox(joined)
    for word in "abc":
        mailbox.put(word)
    assert await mailbox.take() == "a+b+c"
    mailbox.put("d")
    assert await mailbox.take() == "d"


async def test_one_waits_for_a_message() -> None:
    mailbox = Mailbox(joined)
    taking = asyncio.create_task(mailbox.take())
    await asyncio.sleep(0)
    assert not taking.done()
    mailbox.put("a")
    assert await taking == "a"


async def test_an_error_comes_after_the_last_message_and_stays() -> None:
    mailbox = Mailbox(joined)
    mailbox.put("a")
    mailbox.fail(ValueError("broken"))
    assert await mailbox.take() == "a"
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            await mailbox.take()
