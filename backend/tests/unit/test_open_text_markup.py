"""Markup in a text that is spoken while it arrives, on its way to the model."""

from __future__ import annotations

from collections.abc import AsyncIterator

from cantata.contract.data.request import PipelineRequest, StageInput
from cantata.pipeline.open_text import OpenText


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
    text = OpenText(feed, "", arriving(), batch=False, stretch=1.0)
    await text.begin(timeout_s=30)
    assert feed.text == "\nHe"
    await text.pass_on(None, None)  # type: ignore[arg-type]
    assert (feed.text, feed.closed) == ("\nHello  there\n", True)
