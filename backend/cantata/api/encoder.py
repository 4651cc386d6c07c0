"""The encoder of one response, used without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cantata.audio.encoding import Encoder, open_encoder
from cantata.audio.formats import OutputFormat
from cantata.contract.service import Samples


@asynccontextmanager
async def encoding(output: OutputFormat) -> AsyncIterator[ResponseEncoder]:
    """An encoder that is freed when the block is left, also by a cancellation."""
    encoder = ResponseEncoder(await asyncio.to_thread(open_encoder, output), output)
    try:
        yield encoder
    finally:
        encoder.close()


class ResponseEncoder:
    """Encodes short pieces at once and longer ones in a worker thread, one at a time: whoever
    awaits a piece has handed over no other."""

    def __init__(self, encoder: Encoder, output: OutputFormat) -> None:
        self._encoder = encoder
        self._inline_samples = round(output.audio_format.inline_s * output.model_rate)
        self._job: asyncio.Future[bytes] | None = None

    async def feed(self, samples: Samples) -> bytes:
        """More samples; gives what is complete of the file by now, maybe nothing."""
        if len(samples) <= self._inline_samples:
            return self._encoder.feed(samples)
        return await self._in_thread(lambda: self._encoder.feed(samples))

    async def finish(self) -> bytes:
        """The rest of the file."""
        return await self._in_thread(self._encoder.finish)

    def close(self) -> None:
        """Free everything now, or as soon as a thread that is still encoding is done."""
        if self._job is None or self._job.done():
            self._encoder.close()
        else:
            self._job.add_done_callback(lambda _: self._encoder.close())

    async def _in_thread(self, work: Callable[[], bytes]) -> bytes:
        self._job = asyncio.get_running_loop().run_in_executor(None, work)
        # A thread cannot be cancelled: what it uses must live on until it is done.
        return await asyncio.shield(self._job)
