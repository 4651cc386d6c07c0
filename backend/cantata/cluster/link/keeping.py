"""A link that is reconnected whenever it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from cantata.cluster.link.errors import Garbage, LinkLost, Refused

_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Before the next attempts to connect; the last one from then on."""
_REFUSED_PAUSE_S = 10.0
"""After a refusal or an unreadable message: an operator must change something first."""


async def keep_connected(
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
        try:
            error, pause_s = await once(), _PAUSES_S[0]
            failures = 0
        except LinkLost as refusal:
            error, pause_s = refusal, _PAUSES_S[min(failures, len(_PAUSES_S) - 1)]
            failures += 1
        if isinstance(error, Refused | Garbage):
            pause_s = _REFUSED_PAUSE_S
        on_loss(error)
        await asyncio.sleep(pause_s)
