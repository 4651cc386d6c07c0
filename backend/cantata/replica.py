"""`cantata replica`: a host's models for servers elsewhere."""

from __future__ import annotations

import asyncio
import logging
import shlex
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cantata.cluster.address import Address
from cantata.cluster.key import LinkKey, check_key, read_key
from cantata.cluster.link.connecting import address_of, listen
from cantata.interpreter import prepare_for_streams
from cantata.logs import LogFormat

if TYPE_CHECKING:
    from cantata.cluster.replica.host import ReplicaHost
    from cantata.config import Dtype
    from cantata.engine.plan import ServicePlan

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """What the command line says."""

    listen: str
    """HOST:PORT"""
    models: Sequence[str]
    deploy: Sequence[Path]
    dtype: Dtype | None
    key_file: Path | None
    drain_timeout_s: float
    log_format: LogFormat


def make_host(
    plans: Sequence[ServicePlan], listener: socket.socket, key: LinkKey, log_format: LogFormat
) -> ReplicaHost:
    """A replica of these models, which nothing runs before `start`.

    Args:
        plans: of `cantata.engine.plan.plan_services`.
        listener: of `cantata.cluster.link.connecting.listen`.
        key: that edges must have.
        log_format: of the stage processes.

    Raises:
        ConfigError: a checkpoint is not valid, or two models have the same name.
    """
    from cantata.cluster.replica.host import ReplicaHost
    from cantata.cluster.replica.identity import identity_of
    from cantata.engine.service import create_service

    identities = {
        plan.located.plugin.name: identity_of(plan.located.checkpoint, plan.deployment)
        for plan in plans
    }
    return ReplicaHost(create_service(*plans, log_format=log_format), identities, listener, key)


async def run_replica(
    options: ReplicaOptions,
    show: Callable[[str], None],
    meet: Callable[[ReplicaHost], None] = lambda host: None,
) -> None:
    """Serve edges until a signal: the first one drains, the second ends at once.

    Args:
        show: tells the operator something.
        meet: gets the host before it starts.

    Raises:
        ConfigError: the address, the key or the models are not usable.
        StageDied: a stage ended before it was ready.
    """
    address, key = Address.parse(options.listen), read_key(options.key_file)
    check_key(key, address)
    with listen(address) as listener, _signals() as told:
        from cantata.engine.plan import plan_services, preload_stages

        plans = plan_services(options.models, options.deploy, options.dtype)
        preload_stages(plans)
        host = make_host(plans, listener, key, options.log_format)
        meet(host)
        names = ", ".join(plan.located.plugin.name for plan in plans)
        show(f"loading {names} ...")
        for plan in plans:
            if hint := _hint_of(plan):
                show(hint)
        prepare_for_streams()
        try:
            if await _unless(told, host.start()):
                show(f"replica ready on {address_of(listener)}")
                await told.wait()
                told.clear()
                await _unless(told, host.drain(options.drain_timeout_s))
        finally:
            await host.stop()


def _hint_of(plan: ServicePlan) -> str | None:
    """That a deployment's `realtime` has no effect here, if it has one."""
    said = plan.deployment.realtime.model_dump(exclude_none=True)
    if not said:
        return None
    options = " ".join(
        f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in said.items()
    )
    return (
        f"{plan.located.plugin.name}: spoken conversations are the edges' concern, which do not "
        f"read this deployment's section realtime; `cantata serve --replica` takes {options}"
    )


async def _unless(told: asyncio.Event, work: Coroutine[None, None, object]) -> bool:
    """Whether some work has ended before the next signal, which cancels it."""
    working = asyncio.create_task(work)
    telling = asyncio.create_task(told.wait())
    await asyncio.wait({working, telling}, return_when=asyncio.FIRST_COMPLETED)
    telling.cancel()
    if working.done():
        working.result()
        return True
    working.cancel()
    await asyncio.wait({working})
    return False


@contextmanager
def _signals() -> Iterator[asyncio.Event]:
    """Set by SIGTERM and SIGINT."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, told.set)
    try:
        yield told
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
