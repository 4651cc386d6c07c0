"""Reads a recording that a request contains as a `data:` URL or names by a URL."""

from __future__ import annotations

from functools import partial

from cantata.contract.data.request import ReferenceAudio
from cantata.media.kinds import AUDIO
from cantata.media.loading import MediaLoader, check_size
from cantata.references.decoding import decode


class ReferenceReader:
    """Reads recordings within one server's limits, away from the event loop."""

    def __init__(self, max_bytes: int, loader: MediaLoader) -> None:
        self._max_bytes = max_bytes
        self._loader = loader

    async def read(self, source: str, transcript: str | None, param: str) -> ReferenceAudio:
        """The recording behind a base64 `data:` URL or, if fetching is on, an http(s) URL.

        Raises:
            InvalidAudio: not such a URL, or the recording cannot be used.
            PayloadTooLarge: it has too many bytes.
        """
        data = await self._loader.load(source, AUDIO, param, self._max_bytes)
        return await self.decode(data, transcript, param)

    async def decode(self, data: bytes, transcript: str | None, param: str) -> ReferenceAudio:
        """The recording in a file's bytes; errors as in `read`."""
        check_size(len(data), param, self._max_bytes)
        return await self._loader.decode(partial(decode, data, transcript, param))
