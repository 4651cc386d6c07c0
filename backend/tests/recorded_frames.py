"""Lets a served talker complete its frames by replays alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def recorded_frames(talker: Any) -> Iterator[None]:
    """Its own completion must not be called inside.

    Args:
        talker: as vLLM runs it, with the engine's mixins.
    """
    talker.talker_step.record()
    try:
        with patch.object(talker, "complete_frames", side_effect=AssertionError("not a replay")):
            yield
    finally:
        talker.talker_step._recorded = None
