"""How many frames a talker's request may have."""

from __future__ import annotations

from cantata.contract.data.errors import InvalidRequest


def frame_limit(
    prompt_len: int,
    positions: int,
    wanted: int | None,
    most: int,
    *,
    least: int = 1,
    param: str = "input",
) -> int:
    """Return the request's own limit, or the model's as far as there is room.

    Args:
        prompt_len: positions of the prompt.
        positions: of a request of this deployment, its frames included.
        wanted: the request's own limit; whether there is room for it is checked with the prompt.
        most: the model's.
        least: frames that there must be room for.
        param: the request field that an error names.

    Raises:
        InvalidRequest: the prompt leaves no room for sound.
    """
    room = positions - prompt_len
    if room < least:
        raise InvalidRequest(
            f"the prompt has {prompt_len} positions; of the {positions} of this deployment none is "
            "left for sound",
            param,
        )
    return min(most, room) if wanted is None else wanted
