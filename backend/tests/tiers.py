"""Short forms of long tests: `make test` runs the short forms, `make test-long` the full ones."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")
LONG = bool(os.environ.get("CANTATA_LONG"))
"""Set by `make test-long`."""


def scaled(short: T, full: T) -> T:
    """The amount of work in a test marked `long`."""
    return full if LONG else short
