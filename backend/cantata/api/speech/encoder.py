"""The encoder of one response, which never blocks the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cantata.audio.encoding import Encoder, open_encoder
from cantata.audio.formats import OutputFormat
from cantata.contract.service import Samples
from cantata.media.signing import FileSigner


@asynccontextmanager
async def encoding(output: OutputFormat) -> AsyncIterator[ResponseEncoder]:
    """An encoder that is freed when the block is left, even by a cancellation."""
    encoder = ResponseEncoder(await asyncio.to_thread(open_encoder, output), output)
    try:
        yield encoder
    finally:
        encoder.close()


class ResponseEncoder:
    """Encodes short pieces at once and longer ones in a worker thread, one at a time,
    because the caller awaits each piece."""

    def __init__(self, encoder: Encoder, output: OutputFormat) -> None:
        self._encoder = encoder
        self._media_type = output.audio_format.media_type
        self._inline_samples = round(output.audio_format.inline_s * output.model_rate)
        self._job: asyncio.Future[bytes] | None = None

    async def feed(self, samples: Samples) -> bytes:
        """Add samples; returns the complete bytes of the file so far, maybe none."""
        if len(samples) <= self._inline_samples:
            return self._encoder.feed(samples)
        return await self._in_thread(lambda: self._encoder.feed(samples))

    async def finish(self) -> bytes:
        """The rest of the file."""
        return await self._in_thread(self._encoder.finish)

    async def finish_whole(self, file: bytearray, signer: FileSigner | None) -> None:
        """Add the rest to a file that was kept, write its true length at its beginning, and sign
        it, if there is a signer and its format can be signed."""
        file += await self.finish()
        head = self._encoder.head(len(file))
        file[: len(head)] = head
        if signer is not None and signer.takes(self._media_type):
            whole = bytes(file)
            file[:] = await self._in_thread(lambda: signer.sign(whole, self._media_type))

    def close(self) -> None:
        """Free everything now, or as soon as a thread that is still encoding has finished."""
        if self._job is None or self._job.done():
            self._encoder.close()
        else:
            self._job.add_done_callback(lambda _: self._encoder.close())

    async def _in_thread(self, work: Callable[[], bytes]) -> bytes:
        self._job = asyncio.get_running_loop().run_in_executor(None, work)
        # A thread cannot be cancelled: its objects must live until it is done.
        return await asyncio.shield(self._job)
