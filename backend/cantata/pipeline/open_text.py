"""A text that is spoken while it arrives: the request begins with the first words, and its stage
waits for late ones while other requests continue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from cantata.contract.data.errors import CantataError, ChunkTimeout
from cantata.contract.data.request import PipelineRequest, check_text_length
from cantata.contract.model.plugin import TextFeed
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.output_stream import OpenRequest
from cantata.text import ArrivingMarkup, is_silent


class OpenText:
    """One text while it arrives.

    Args:
        text: its beginning; may be empty.
        fragments: the rest, as the caller wrote it.
        max_characters: most that it may have.
        stretch: as `PipelineRequest`'s.

    Raises:
        InvalidRequest: its beginning is too long.
    """

    def __init__(
        self,
        feed: TextFeed,
        text: str,
        fragments: AsyncIterator[str],
        *,
        max_characters: int,
        batch: bool,
        stretch: float,
    ) -> None:
        self._feed = feed
        self._characters, self._max_characters = 0, max_characters
        self._markup = ArrivingMarkup()
        self._silent = ""
        """Text that came before the first words; a talker would make up a sound for it alone."""
        self._has_words = False
        self._read(text)
        self._fragments = fragments
        self._batch = batch
        self._stretch = stretch
        self._closed = False
        self._request: PipelineRequest | None = None

    @property
    def request(self) -> PipelineRequest:
        """What the pipeline runs; known once `begin` has returned."""
        assert self._request is not None, "begin comes first"
        return self._request

    @property
    def is_wordless(self) -> bool:
        """Whether the text has ended and is only punctuation, emoji and the like."""
        return self._closed and self._silent != "" and not self._has_words

    async def begin(self, timeout_s: float) -> None:
        """Take text until speaking can begin, or until a text without words has ended.

        Raises:
            ChunkTimeout: no fragment came within `timeout_s` of the one before.
            InvalidRequest: the text is too long, or has ended, and nothing in it can be spoken.
        """
        while (request := self._feed.start()) is None:
            if self.is_wordless:
                return
            try:
                async with asyncio.timeout(timeout_s):
                    await self._take()
            except TimeoutError:
                raise ChunkTimeout(f"no text for {timeout_s:g} s") from None
        self._request = replace(request, batch=self._batch, stretch=self._stretch)

    @asynccontextmanager
    async def feeding(self, orchestrator: Orchestrator, opened: OpenRequest) -> AsyncIterator[None]:
        """While inside, send the stage new text. An error in the text ends the stream."""
        feeding = asyncio.create_task(
            self._pass_on(orchestrator, opened), name=f"text:{opened.request_id}"
        )
        try:
            yield
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)

    async def _pass_on(self, orchestrator: Orchestrator, opened: OpenRequest) -> None:
        try:
            while not self._closed:
                await self._take()
                payload = self._feed.more()
                if payload is not None:
                    await orchestrator.extend(opened, self._feed.stage, payload, final=self._closed)
        except CantataError as error:
            opened.fail(error)

    async def _take(self) -> None:
        try:
            self._read(await anext(self._fragments))
        except StopAsyncIteration:
            self._push(self._markup.close())
            self._closed = True
            if not self.is_wordless:
                self._feed.close()

    def _read(self, written: str) -> None:
        self._characters += len(written)
        check_text_length(self._characters, self._max_characters, may_be_empty=True)
        self._push(self._markup.push(written))

    def _push(self, spoken: str) -> None:
        if not self._has_words:
            self._silent += spoken
            self._has_words = not is_silent(spoken)
            spoken = self._silent if self._has_words else ""
        if spoken:
            self._feed.push(spoken)
