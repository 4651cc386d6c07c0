"""A recording as a request names it, `data:` or an address, -> a reference."""

from __future__ import annotations

import asyncio
import base64
import binascii

from cantata.contract.data.errors import InvalidAudio, PayloadTooLarge
from cantata.contract.data.request import ReferenceAudio
from cantata.references.decoding import decode
from cantata.references.fetching import Fetcher

_PARALLEL = 2
"""Files decoded at the same time; the stages need the other cores."""
_DATA_HEAD = "data:"
_MAX_HEAD_CHARACTERS = 256


class ReferenceReader:
    """Reads recordings within one server's limits, away from the event loop."""

    def __init__(self, max_bytes: int, fetcher: Fetcher | None) -> None:
        """`fetcher` None: addresses are rejected."""
        self._max_bytes = max_bytes
        self._fetcher = fetcher
        self._slots = asyncio.Semaphore(_PARALLEL)

    async def read(self, source: str, transcript: str | None, param: str) -> ReferenceAudio:
        """The recording behind a `data:` URL with base64, or an http(s) URL where that is on.

        Raises:
            InvalidAudio: not such a URL, or the recording cannot be used.
            PayloadTooLarge: it has too many bytes.
        """
        if source[: len(_DATA_HEAD)].lower() == _DATA_HEAD:
            data = await asyncio.to_thread(self._unpack, source, param)
        elif self._fetcher is not None:
            data = await self._fetcher.fetch(source)
        elif source.lower().startswith(("http://", "https://")):
            raise InvalidAudio(
                f"this server fetches no URLs; send {param} as data:audio/wav;base64,...", param
            )
        else:
            raise InvalidAudio(f"{param} must be a URL: data:audio/wav;base64,...", param)
        return await self.decode(data, transcript, param)

    async def decode(self, data: bytes, transcript: str | None, param: str) -> ReferenceAudio:
        """The recording in a file's bytes; errors as in `read`."""
        self._check_size(len(data), param)
        async with self._slots:
            return await asyncio.to_thread(decode, data, transcript, param)

    def _unpack(self, source: str, param: str) -> bytes:
        head, comma, body = source.partition(",")
        kind, *options = head[len(_DATA_HEAD) : _MAX_HEAD_CHARACTERS].lower().split(";")
        if not comma or "base64" not in options:
            raise InvalidAudio(f"{param} must read data:audio/wav;base64, and then base64", param)
        # Browsers call a recording of sound alone video/webm, too, and some tools say nothing.
        if not kind.startswith(("audio/", "video/")) and kind != "application/octet-stream":
            raise InvalidAudio(f"{param} has the media type {kind!r}; valid: audio/...", param)
        self._check_size(len(body) * 3 // 4 - 2, param)
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidAudio(f"{param} is not valid base64", param) from None

    def _check_size(self, size: int, param: str) -> None:
        if size > self._max_bytes:
            raise PayloadTooLarge(f"{param} is larger than {self._max_bytes} bytes", param)
