"""A mailbox: the latest message, and errors after it."""

from __future__ import annotations

import asyncio

import pytest

from cantata.pipeline.mailbox import Mailbox


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
