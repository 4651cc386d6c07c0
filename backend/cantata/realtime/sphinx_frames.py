"""What `sphinx` and its worker exchange; light to import in both."""

from __future__ import annotations

import struct
from enum import IntEnum

HEADER = struct.Struct("<QIB")
"""The utterance, the number of bytes that follow, and a `Kind`."""
SPHINX_RATE = 16_000
"""Hz."""


class Kind(IntEnum):
    """What a frame is."""

    SOUND = 0
    """s16le samples of an utterance."""
    END = 1
    """Nothing more follows: its words are wanted."""
    DROP = 2
    """Nothing more follows, and nobody waits."""
