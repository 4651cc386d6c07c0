"""A process that ends as soon as the process at the other end of a connection has."""

from __future__ import annotations

import os
import select
import threading


def exit_when_closed(descriptor: int) -> None:
    """End this process once the other end is closed, even while it loads a model or computes.
    `descriptor`: of a connected socket, which stays open."""

    def wait() -> None:
        poll = select.poll()
        poll.register(descriptor, select.POLLRDHUP)
        poll.poll()
        os._exit(0)

    threading.Thread(target=wait, name="exit-with-peer", daemon=True).start()
