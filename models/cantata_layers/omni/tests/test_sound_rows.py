"""Sounds have as many rows as the audio encoder makes."""

from __future__ import annotations

import pytest

from cantata_layers.omni.inputs import sound_rows


@pytest.mark.parametrize(
    ("frames", "rows"), [(1, 1), (8, 1), (9, 2), (99, 13), (100, 13), (101, 14), (300, 39)]
)
def test_a_second_of_sound_has_thirteen_rows(frames: int, rows: int) -> None:
    assert sound_rows(frames) == rows
