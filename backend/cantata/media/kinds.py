"""The kinds of files that clients send, and the errors for files that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import InvalidAudio, InvalidImage, InvalidMedia, InvalidVideo


@dataclass(frozen=True, slots=True)
class MediaKind:
    """One kind of file that clients send."""

    error: type[InvalidMedia]
    """Raised for a file that cannot be used."""
    media_types: tuple[str, ...]
    """Prefixes of the media types that a `data:` URL may have."""
    example: str
    """The beginning of a valid `data:` URL."""


# Browsers call a recording of sound alone video/webm, too.
AUDIO = MediaKind(InvalidAudio, ("audio/", "video/"), "data:audio/wav;base64,")
IMAGE = MediaKind(InvalidImage, ("image/",), "data:image/png;base64,")
VIDEO = MediaKind(InvalidVideo, ("video/",), "data:video/mp4;base64,")
