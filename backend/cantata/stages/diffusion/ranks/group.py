"""The ranks of one stage find each other; afterwards torch's collectives work among them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import distributed

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.denoiser import Ranks

LOOPBACK = "127.0.0.1"
LOOPBACK_INTERFACE = "lo"
TIMEOUT = timedelta(minutes=10)
"""Of one exchange. A rank that has ended is noticed at once by other means."""


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket on the loopback for the ranks' common store; torch's own would listen to every
    interface."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield listener


def join(ranks: Ranks, device: str, port: int, listener: socket.socket | None) -> None:
    """Make this process a rank; returns when all of them are there.

    Args:
        ranks: which one it is.
        device: where it computes.
        port: of the common store.
        listener: rank 0's socket on that port, which torch takes over; None for the others.

    Raises:
        ConfigError: this machine has too few GPUs.
    """
    on_gpu = device.startswith("cuda")
    if on_gpu:
        count = torch.cuda.device_count()
        if count < ranks.size:
            raise ConfigError(f"parallel: {ranks.size} ranks need as many GPUs; there are {count}")
        torch.cuda.set_device(device)
    # All ranks are on this machine, and nobody else may connect to them.
    for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        os.environ.setdefault(variable, LOOPBACK_INTERFACE)
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        LOOPBACK,
        port,
        world_size=ranks.size,
        is_master=listener is not None,
        wait_for_workers=False,
        timeout=TIMEOUT,
        master_listen_fd=None if listener is None else listener.detach(),
    )
    distributed.init_process_group(
        "nccl" if on_gpu else "gloo",
        store=store,
        rank=ranks.rank,
        world_size=ranks.size,
        timeout=TIMEOUT,
    )
