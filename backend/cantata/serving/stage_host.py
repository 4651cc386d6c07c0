"""`cantata stage-host`: runs stages of pipelines whose servers are elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cantata.distributed.address import Address
from cantata.distributed.key import check_key, read_key
from cantata.distributed.link.connecting import listen
from cantata.serving.shutdown import run_until, stop_on_signals
from cantata.utils.logs import LogFormat
from cantata.utils.low_latency import shorten_time_slice

if TYPE_CHECKING:
    from cantata.contract.model.plugin import ModelPlugin


@dataclass(frozen=True, slots=True)
class StageHostOptions:
    listen: str
    """HOST:PORT"""
    key_file: Path | None
    drain_timeout_s: float
    log_format: LogFormat


async def run_stage_host(
    options: StageHostOptions,
    show: Callable[[str], None],
    plugins: Mapping[str, ModelPlugin] | None = None,
) -> None:
    """Run stages until a signal: after the first one, no server is accepted, and the stages run
    until their servers have left; the second one ends them at once.

    Args:
        plugins: the models whose stages may be run, by name; None: all that are installed.

    Raises:
        ConfigError: the address or the key is not usable.
    """
    address, key = Address.parse(options.listen), read_key(options.key_file)
    check_key(key, address)
    with listen(address) as listener, stop_on_signals() as stop_event:
        from cantata.ipc import fork_server

        fork_server.begin()  # it imports torch while this process waits for its first server
        from cantata.config.plugins import load_plugins
        from cantata.distributed.stages.host.host import StageHost
        from cantata.distributed.stages.host.pipeline import StageLogs

        logs = StageLogs(logging.getLogger().getEffectiveLevel(), options.log_format)
        host = StageHost(load_plugins() if plugins is None else plugins, listener, key, logs)
        shorten_time_slice()
        host.start()
        show(f"stage host ready on {host.address}")
        try:
            await stop_event.wait()
            stop_event.clear()
            await run_until(stop_event, host.drain(options.drain_timeout_s))
        finally:
            await host.stop()
