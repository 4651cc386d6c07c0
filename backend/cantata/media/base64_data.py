"""Base64 as clients write it: RFC 4648's two alphabets, MIME's line breaks, with or without
padding, bare or in a `data:` URL (RFC 2397)."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote

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
    """Decode base64 without a `data:` head.

    Raises:
        Base64Error: another character, or a length that no data has.
    """
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
