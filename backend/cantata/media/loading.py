"""Loads a file that a request contains in base64 or as a `data:` URL, or names by a URL.

Base64 comes as clients write it: RFC 4648's two alphabets, MIME's line breaks, with or without
padding, bare or in a `data:` URL (RFC 2397).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote

from cantata.contract.data.errors import PayloadTooLarge
from cantata.media.fetching import Fetcher
from cantata.media.kinds import MediaKind

_WHITESPACE = str.maketrans("", "", " \t\r\n\f\v")
_URL_SAFE = str.maketrans("-_", "+/")
_FOREIGN = re.compile(r"[^A-Za-z0-9+/]")
_DATA_URL = re.compile(
    r"""\s*data:(?P<type>[^,;]{0,128})
        (?P<options>(?:;[^;]{0,128}){0,8};\s*base64\s*(?:;[^,;]{0,128}){0,8}|(?:;[^,;]{0,128}){0,8}),""",
    re.IGNORECASE | re.VERBOSE,
)
"""Browsers write commas into options, too: `data:video/webm;codecs=vp8,opus;base64,`."""


class Base64Error(ValueError):
    """The text is not base64; says where."""


def decode_base64(text: str) -> bytes:
    """Decode base64 without a `data:` head. Raises Base64Error: another character, or a length that
    no data has."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return _decode_leniently(text)


def split_data_url(text: str) -> tuple[str, tuple[str, ...], str] | None:
    """Media type, options in lower case and body of a `data:` URL; None: it is none."""
    found = _DATA_URL.match(text)
    if found is None:
        return None
    options = tuple(one.strip().lower() for one in found["options"].split(";")[1:])
    return found["type"].strip().lower(), options, text[found.end() :]


def _decode_leniently(text: str) -> bytes:
    plain = (unquote(text) if "%" in text else text).translate(_WHITESPACE).translate(_URL_SAFE)
    plain = plain.rstrip("=")
    foreign = _FOREIGN.search(plain)
    if foreign is not None:
        place = text.find(foreign[0])
        where = f" at character {place}" if place >= 0 else ""
        raise Base64Error(f"has {foreign[0]!r}{where}, which base64 has not")
    if len(plain) % 4 == 1:
        raise Base64Error("is cut off: one character is left over")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


T = TypeVar("T")

_PARALLEL = 2
"""Files decoded or written at the same time; the other cores are for the stages."""
_UNNAMED_TYPES = ("", "application/octet-stream", "binary/octet-stream")
"""Media types that tools write when they know none."""
_BARE = re.compile(r"[A-Za-z0-9+/_\s-]{64}")
"""The beginning of base64 where a URL is expected."""


class MediaLoader:
    """Loads the files of one server's requests, away from the event loop."""

    def __init__(self, fetcher: Fetcher | None) -> None:
        """Without a `fetcher`, http(s) URLs are rejected."""
        self._fetcher = fetcher
        self._slots = asyncio.Semaphore(_PARALLEL)

    async def load(self, url: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
        """The file in a base64 `data:` URL or in bare base64, or, if fetching is on, behind an
        http(s) URL.

        Raises:
            InvalidMedia: not such a URL, or nothing can be fetched from it.
            PayloadTooLarge: the file is larger than `max_bytes`.
        """
        if url.lstrip()[:5].lower() == "data:" or _BARE.match(url):
            return await asyncio.to_thread(_unpack, url, kind, param, max_bytes)
        if self._fetcher is not None:
            return await self._fetcher.fetch(url, kind, param, max_bytes)
        if url[:8].lower().startswith(("http://", "https://")):
            raise kind.error(
                f"this server does not fetch URLs; send {param} as {kind.example}...", param
            )
        raise kind.error(f"{param} must be a URL: {kind.example}...", param)

    async def unpack(self, encoded: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
        """A file that was sent as base64, bare or in a `data:` URL; errors as in `load`."""
        return await asyncio.to_thread(_unpack, encoded, kind, param, max_bytes)

    async def decode(self, work: Callable[[], T]) -> T:
        """Run the decoding, or the writing, of one file in a worker thread, when its turn comes.

        A thread cannot be cancelled: if the caller is, the turn lasts until the thread is done, or
        clients that come and go would fill every thread of the server.
        """
        await self._slots.acquire()
        job = asyncio.get_running_loop().run_in_executor(None, work)
        job.add_done_callback(self._decode)
        return await asyncio.shield(job)

    def _decode(self, job: asyncio.Future[Any]) -> None:
        self._slots.release()
        # Nobody may be left to ask for it.
        if not job.cancelled():
            job.exception()


def check_size(size: int, param: str, max_bytes: int) -> None:
    """Reject a file that is too large. Raises PayloadTooLarge: names the limit."""
    if size > max_bytes:
        raise PayloadTooLarge(f"{param} is larger than {max_bytes} bytes", param)


def _unpack(sent: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
    url = split_data_url(sent)
    if url is None and sent.lstrip()[:5].lower() == "data:":
        raise kind.error(f"{param} must begin with {kind.example} and continue in base64", param)
    encoded = sent if url is None else _decode_body(url, kind, param)
    check_size(len(encoded) * 3 // 4 - 2, param, max_bytes)
    try:
        return decode_base64(encoded)
    except Base64Error as error:
        raise kind.error(f"{param} is not valid base64: it {error}", param) from None


def _decode_body(url: tuple[str, tuple[str, ...], str], kind: MediaKind, param: str) -> str:
    named, options, body = url
    if "base64" not in options:
        raise kind.error(f"{param} must begin with {kind.example} and continue in base64", param)
    if not named.startswith(kind.media_types) and named not in _UNNAMED_TYPES:
        valid = ", ".join(f"{one}..." for one in kind.media_types)
        raise kind.error(f"{param} has the media type {named!r}; valid: {valid}", param)
    return body
