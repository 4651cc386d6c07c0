"""Markup in a text that is spoken while it arrives, on its way to the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, StageInput
from cantata.pipeline.open_text import OpenText
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.output_stream import OpenRequest


class Recorder:
    """A feed that begins with its first words."""

    stage = "talker"

    def __init__(self) -> None:
        self.text = ""
        self.closed = False

    def push(self, text: str) -> None:
        self.text += text

    def close(self) -> None:
        self.closed = True

    def start(self) -> PipelineRequest | None:
        return PipelineRequest("r", {}) if self.text.strip() or self.closed else None

    def more(self) -> StageInput | None:
        return None


async def test_the_model_gets_words_and_no_marks() -> None:
    pieces = ["<spe", "ak>", "**He", "llo** <br", 'eak time="1s"/>there', "</speak>"]

    async def arriving() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    feed = Recorder()
    text = OpenText(feed, "", arriving(), max_characters=100, batch=False, stretch=1.0)
    await text.begin(timeout_s=30)
    assert feed.text == "\nHe"
    opened = cast(OpenRequest, SimpleNamespace(request_id="r"))
    async with text.feeding(cast(Orchestrator, None), opened), asyncio.timeout(30):
        while not feed.closed:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert (feed.text, feed.closed) == ("\nHello  there\n", True)


async def test_a_text_that_grows_too_long_is_rejected() -> None:
    async def arriving() -> AsyncIterator[str]:
        yield "and more"

    with pytest.raises(InvalidRequest, match="input has 13 characters; at most 12"):
        OpenText(
            Recorder(), "thirteen here", arriving(), max_characters=12, batch=False, stretch=1.0
        )
    text = OpenText(Recorder(), " \n   ", arriving(), max_characters=12, batch=False, stretch=1.0)
    with pytest.raises(InvalidRequest, match="input has 13 characters; at most 12"):
        await text.begin(timeout_s=30)
