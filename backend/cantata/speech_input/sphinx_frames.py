"""The frames that `sphinx` and its worker exchange; quick to import in both."""

from __future__ import annotations

import struct
from enum import IntEnum

HEADER = struct.Struct("<QIB")
"""Fields of a frame's header: the utterance, the number of bytes that follow, and the kind."""
SPHINX_RATE = 16_000
"""Sample rate of the recogniser, in Hz."""


class SphinxFrameKind(IntEnum):
    """What a frame is."""

    SOUND = 0
    """s16le samples of an utterance."""
    END = 1
    """The sound has ended: send the words."""
    DROP = 2
    """The sound has ended, and the words are not needed."""
