"""What a file may be, and how a client is told that it is not."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import InvalidAudio, InvalidImage, InvalidMedia, InvalidVideo


@dataclass(frozen=True, slots=True)
class MediaKind:
    """One kind of file that clients send."""

    error: type[InvalidMedia]
    """Raised for a file that cannot be used."""
    media_types: tuple[str, ...]
    """Beginnings of those that a `data:` URL may name."""
    example: str
    """The beginning of a valid `data:` URL."""


# Browsers call a recording of sound alone video/webm, too.
AUDIO = MediaKind(InvalidAudio, ("audio/", "video/"), "data:audio/wav;base64,")
IMAGE = MediaKind(InvalidImage, ("image/",), "data:image/png;base64,")
VIDEO = MediaKind(InvalidVideo, ("video/",), "data:video/mp4;base64,")
