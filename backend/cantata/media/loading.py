"""Loads a file that a request contains in base64 or as a `data:` URL, or names by a URL."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from typing import Any, TypeVar

from cantata.contract.data.errors import PayloadTooLarge
from cantata.media.fetching import Fetcher
from cantata.media.kinds import MediaKind

T = TypeVar("T")

_PARALLEL = 2
"""Files decoded or written at the same time; the other cores are for the stages."""
_DATA_HEAD = "data:"
_MAX_HEAD_CHARACTERS = 256
_UNNAMED_TYPE = "application/octet-stream"
"""The media type that some tools write when they know none."""


class MediaLoader:
    """Loads the files of one server's requests, away from the event loop."""

    def __init__(self, fetcher: Fetcher | None) -> None:
        """With no `fetcher`, http(s) URLs are rejected."""
        self._fetcher = fetcher
        self._slots = asyncio.Semaphore(_PARALLEL)

    async def load(self, url: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
        """The file behind a base64 `data:` URL or, if fetching is on, an http(s) URL.

        Raises:
            InvalidMedia: not such a URL, or nothing can be fetched from it.
            PayloadTooLarge: the file is larger than `max_bytes`.
        """
        if url[: len(_DATA_HEAD)].lower() == _DATA_HEAD:
            return await asyncio.to_thread(_unpack_url, url, kind, param, max_bytes)
        if self._fetcher is not None:
            return await self._fetcher.fetch(url, kind, param, max_bytes)
        if url[:8].lower().startswith(("http://", "https://")):
            raise kind.error(
                f"this server does not fetch URLs; send {param} as {kind.example}...", param
            )
        raise kind.error(f"{param} must be a URL: {kind.example}...", param)

    async def unpack(self, encoded: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
        """A file that was sent as base64; errors as in `load`."""
        return await asyncio.to_thread(_unpack, encoded, kind, param, max_bytes)

    async def decode(self, work: Callable[[], T]) -> T:
        """Run the decoding, or the writing, of one file in a worker thread, when its turn comes.

        A thread cannot be cancelled: if the caller is, the turn lasts until the thread is done, or
        clients that come and go would fill every thread of the server.
        """
        await self._slots.acquire()
        job = asyncio.get_running_loop().run_in_executor(None, work)
        job.add_done_callback(self._decoded)
        return await asyncio.shield(job)

    def _decoded(self, job: asyncio.Future[Any]) -> None:
        self._slots.release()
        # Nobody may be left to ask for it.
        if not job.cancelled():
            job.exception()


def check_size(size: int, param: str, max_bytes: int) -> None:
    """Reject a file that is too large.

    Raises:
        PayloadTooLarge: names the limit.
    """
    if size > max_bytes:
        raise PayloadTooLarge(f"{param} is larger than {max_bytes} bytes", param)


def _unpack_url(url: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
    head, comma, body = url.partition(",")
    named, *options = head[len(_DATA_HEAD) : _MAX_HEAD_CHARACTERS].lower().split(";")
    if not comma or "base64" not in options:
        raise kind.error(f"{param} must begin with {kind.example} and continue in base64", param)
    if not named.startswith(kind.media_types) and named != _UNNAMED_TYPE:
        valid = ", ".join(f"{one}..." for one in kind.media_types)
        raise kind.error(f"{param} has the media type {named!r}; valid: {valid}", param)
    return _unpack(body, kind, param, max_bytes)


def _unpack(encoded: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
    check_size(len(encoded) * 3 // 4 - 2, param, max_bytes)
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise kind.error(f"{param} is not valid base64", param) from None
