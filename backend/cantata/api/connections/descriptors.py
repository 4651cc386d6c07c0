"""How many connections this process may hold open, from its limit on file descriptors."""

from __future__ import annotations

import logging
import os
import resource

logger = logging.getLogger(__name__)

_WANTED_DESCRIPTORS = 65_536
_RESERVE = 64
"""Kept for files, for connections that are being accepted, and for restarting a stage."""
_MIN_CONNECTIONS = 8
_MAX_CONNECTIONS = 10_000


def raise_descriptor_limit() -> None:
    """Raise the soft limit on descriptors up to the hard limit, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    wanted = min(wanted, _WANTED_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        logger.warning("the limit on open files stays at %d: %s", soft, error)


def connection_limit() -> int:
    """Connections that leave the reserve untouched, counted from what is open now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    spare = soft - len(os.listdir("/dev/fd")) - _RESERVE
    return min(max(spare, _MIN_CONNECTIONS), _MAX_CONNECTIONS)
