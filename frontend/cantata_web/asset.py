"""A file that browsers get: compressed once, and sent only to those who do not have it yet."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

import brotli
from fastapi import Request, Response

_FOREVER = "public, max-age=31536000, immutable"
_REVALIDATED = "no-cache"


@dataclass(frozen=True)
class Asset:
    name: str
    media_type: str
    body: bytes

    @classmethod
    def of_text(cls, name: str, media_type: str, text: str) -> Asset:
        return cls(name, f"{media_type}; charset=utf-8", text.encode())

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:16]

    @cached_property
    def hashed_name(self) -> str:
        path = PurePath(self.name)
        return f"{path.stem}-{self.digest}{path.suffix}"

    @cached_property
    def codings(self) -> Mapping[str, bytes]:
        """The body by content coding, best first; a coding that saves nothing is left out."""
        compressed = {"br": brotli.compress(self.body), "gzip": gzip.compress(self.body, 9)}
        return {name: body for name, body in compressed.items() if len(body) < len(self.body)}

    def response(self, request: Request, *, immutable: bool, vary: str = "") -> Response:
        """The content as this client takes it; 304 if it has it already.

        Args:
            immutable: whether this name will always have this content.
            vary: a header, beside `Accept-Encoding`, on which the choice of the content depends.
        """
        coding = next((name for name in self.codings if _is_accepted(request, name)), None)
        headers = {
            "Cache-Control": _FOREVER if immutable else _REVALIDATED,
            "ETag": f'W/"{self.digest}"',
            "Vary": f"Accept-Encoding, {vary}" if vary else "Accept-Encoding",
        }
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if coding is not None:
            headers["Content-Encoding"] = coding
        body = self.body if coding is None else self.codings[coding]
        return Response(body, media_type=self.media_type, headers=headers)


def _is_accepted(request: Request, coding: str) -> bool:
    for offered in request.headers.get("accept-encoding", "").split(","):
        name, _, parameters = offered.partition(";")
        if name.strip().lower() == coding:
            return parameters.replace(" ", "") not in ("q=0", "q=0.0")
    return False
