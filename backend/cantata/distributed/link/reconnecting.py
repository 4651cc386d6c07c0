"""Reconnects a link whenever it is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from cantata.distributed.link.errors import LinkLost, ProtocolError, Refused

_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Before the next attempts to connect; the last one from then on."""
_SETTLED_S = 3.0
"""A link that is lost sooner counts as a failed attempt: its other end may be stopping."""
_REFUSED_PAUSE_S = 10.0
"""After a refusal or an unreadable message: an operator must change something first."""


async def reconnect_forever(
    once: Callable[[], Awaitable[LinkLost]], on_loss: Callable[[LinkLost], None]
) -> None:
    """Until cancelled.

    Args:
        once: connects, and returns why the link was lost once it is; raises LinkLost if there is
            none.
        on_loss: called with that, before each new attempt.
    """
    failures = 0
    while True:
        began_s, settled = time.monotonic(), False
        try:
            error = await once()
            settled = time.monotonic() - began_s >= _SETTLED_S
        except LinkLost as refusal:
            error = refusal
        if settled:
            failures, pause_s = 0, _PAUSES_S[0]
        else:
            pause_s = _PAUSES_S[min(failures, len(_PAUSES_S) - 1)]
            failures += 1
        if isinstance(error, Refused | ProtocolError):
            pause_s = _REFUSED_PAUSE_S
        on_loss(error)
        await asyncio.sleep(pause_s)
