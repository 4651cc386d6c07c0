"""The SDP offer of a call: what a client must offer, and may."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cantata.contract.data.errors import InvalidRequest, PayloadTooLarge

_MAX_BYTES = 64 << 10
"""Browsers' offers have less than 10 KiB."""
_DIRECTIONS = ("sendrecv", "sendonly", "recvonly", "inactive")
_MEDIA = re.compile(r"^m=(\S+)", re.MULTILINE)
_NEEDED = (
    ("a=setup", re.compile(r"^a=setup:(actpass|active|passive)\s*$", re.MULTILINE)),
    (
        "a=fingerprint of sha-256, sha-384 or sha-512",
        re.compile(r"^a=fingerprint:sha-(256|384|512) ", re.MULTILINE | re.IGNORECASE),
    ),
)
"""What DTLS needs of each medium, or of the session."""


@dataclass(frozen=True, slots=True)
class CallOffer:
    """An offer that can be answered."""

    sdp: str
    sends_sound: bool
    """Whether the client sends sound; one that does not may still listen and write."""


def read_offer(sdp: str, *, answers: bool) -> CallOffer:
    """Check an offer.

    Args:
        answers: the session answers aloud, so the client must take sound.

    Raises:
        PayloadTooLarge: no offer is that long.
        InvalidRequest: says what is missing, or too much.
    """
    if len(sdp) > _MAX_BYTES:
        raise PayloadTooLarge(f"sdp has {len(sdp)} bytes; at most {_MAX_BYTES} are taken", "sdp")
    if not sdp.startswith("v=0"):
        raise InvalidRequest("sdp is no SDP offer: it must begin with v=0", "sdp")
    kinds = _MEDIA.findall(sdp)
    if kinds.count("audio") != 1 or kinds.count("application") > 1 or len(kinds) > 2:
        raise InvalidRequest(
            f"sdp offers {', '.join(kinds) or 'nothing'}; valid: one audio track and at most one "
            "data channel (application)",
            "sdp",
        )
    direction = _find_audio_direction(sdp)
    takes = ("sendrecv", "recvonly") if answers else ("sendrecv", "sendonly")
    if direction not in takes:
        raise InvalidRequest(f"sdp: audio is {direction}; valid here: {', '.join(takes)}", "sdp")
    _check_encryption(sdp)
    return CallOffer(_drop_named_candidates(sdp), direction in ("sendrecv", "sendonly"))


def _split_media(sdp: str) -> list[str]:
    """The session's part, then that of each medium."""
    return re.split(r"^(?=m=)", sdp, flags=re.MULTILINE)


def _check_encryption(sdp: str) -> None:
    session, *media = _split_media(sdp)
    for part in media:
        for needed, pattern in _NEEDED:
            if not (pattern.search(part) or pattern.search(session)):
                kind = part[2:].split(maxsplit=1)[0]
                raise InvalidRequest(f"sdp cannot be answered: {kind} needs {needed}", "sdp")


def _find_audio_direction(sdp: str) -> str:
    """That of the audio, or else of the session; without either it is `sendrecv` (RFC 8866)."""
    session, *media = _split_media(sdp)
    audio = next(part for part in media if part.startswith("m=audio"))
    for part in (audio, session):
        for line in part.splitlines():
            if line.removeprefix("a=") in _DIRECTIONS:
                return line.removeprefix("a=")
    return "sendrecv"


def _drop_named_candidates(sdp: str) -> str:
    """Without candidates whose address is a name (mDNS). Such a client is found by its own checks,
    and nobody has to wait for a name that no one here knows."""
    lines = sdp.splitlines()
    kept = (one for one in lines if not (one.startswith("a=candidate:") and ".local " in one))
    return "\r\n".join(kept) + "\r\n"
