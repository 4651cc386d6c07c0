"""How many frames a request may have: its own wish, the model's limit, and the room there is."""

from __future__ import annotations

import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.talker_parts import frame_limit


@pytest.mark.parametrize(
    ("prompt_len", "wanted", "limit"),
    [
        (40, None, 50),
        (60, None, 40),
        (99, None, 1),
        (40, 7, 7),
        # More than there is room for is refused with the prompt, not cut.
        (60, 70, 70),
    ],
)
def test_the_limit_is_the_request_s_or_what_fits(
    prompt_len: int, wanted: int | None, limit: int
) -> None:
    assert frame_limit(prompt_len, 100, wanted, 50) == limit


@pytest.mark.parametrize(("prompt_len", "least"), [(100, 1), (130, 1), (97, 4)])
def test_a_prompt_without_room_is_refused(prompt_len: int, least: int) -> None:
    with pytest.raises(
        InvalidRequest, match=f"has {prompt_len} positions; of the 100 .* none is left for sound"
    ) as caught:
        frame_limit(prompt_len, 100, 5, 50, least=least, param="messages")
    assert caught.value.param == "messages"
    assert frame_limit(100 - least, 100, None, 50, least=least) == least
