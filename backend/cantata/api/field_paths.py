"""Where in a request the value at fault is, in the words of the client that sent it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def place_in(location: Sequence[int | str], sent: Any, *, missing: bool) -> str | None:
    """The way through a body to the value at fault, such as `messages[0].content[1].text`.

    Args:
        location: Pydantic's way, which has the members of unions in between, whose names the client
            did not write.
        sent: the body.
        missing: the value itself is not there.

    Returns:
        None if the whole body is at fault.
    """
    place = ""
    for step in location:
        if isinstance(sent, dict) and step in sent:
            place, sent = f"{place}.{step}", sent[step]
        elif isinstance(sent, list) and isinstance(step, int) and step < len(sent):
            place, sent = f"{place}[{step}]", sent[step]
    if missing and isinstance(sent, dict) and isinstance(location[-1], str):
        place = f"{place}.{location[-1]}"
    return place.removeprefix(".") or None


def get_field(location: Sequence[int | str]) -> str | None:
    """The name of the field at fault, found without the body. For an entry of a list: also its
    index, and the field in it."""
    # FastAPI puts the query's place in front, Pydantic the members of a union in between; the
    # client wrote neither name.
    path = [p for p in location if isinstance(p, str) and p not in ("body", "query")]
    if not path:
        return None
    after = location[location.index(path[0]) + 1 :]
    if not (after and isinstance(after[0], int)):
        return path[0]
    return ".".join((f"{path[0]}[{after[0]}]", *path[1:2]))
