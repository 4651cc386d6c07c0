"""Number formats: whose steps count, and how they are compared."""

from __future__ import annotations

from typing import Any

import pytest
from counting_stages import CountingTalker

from cantata.contract.data.errors import ConfigError
from cantata_bench.number_formats import (
    FORMATS,
    FormatFigures,
    make_formats_table,
    step_all,
)


def test_only_steps_of_all_requests_count_and_not_the_first() -> None:
    talker: Any = CountingTalker()
    frames: Any = {"frames": 6}
    talker.add("early", frames, batch=False)
    talker.step()
    talker.step()
    talker.add("late", frames, batch=False)
    assert len(step_all(talker, 2)) == 3
    talker.add("alone", frames, batch=False)
    with pytest.raises(ConfigError, match="2 requests made no frames together"):
        step_all(talker, 2)


def test_the_first_format_is_what_others_are_compared_with() -> None:
    whole = FormatFigures(4 << 20, 9.0, 0.08, ((0.4, 0.4, 4.0), (0.8, 0.8)))
    small = FormatFigures(1 << 20, 3.0, 0.08, ((0.1, 0.1), (0.4, 0.4)))
    lines = make_formats_table({FORMATS[0]: [whole], FORMATS[1]: [small]}, (1, 4)).splitlines()
    assert lines[0] == "| weights | private memory | loaded after | a step of 1 | a step of 4 |"
    assert lines[2:4] == [
        "| float32 | 4 MiB | 9 s | 400 ms (1.00 x), RTF 5.00 | 800 ms (1.00 x), RTF 10.00 |",
        "| int8, float32 | 1 MiB | 3 s | 100 ms (4.00 x), RTF 1.25 | 400 ms (2.00 x), RTF 5.00 |",
    ]
