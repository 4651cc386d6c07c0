"""`cantata replica`: a host's models for servers elsewhere."""

from __future__ import annotations

import logging
import shlex
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cantata.distributed.address import Address
from cantata.distributed.key import check_key, read_key
from cantata.distributed.link.connecting import get_address, listen
from cantata.serving.shutdown import run_until, stop_on_signals
from cantata.utils.logs import LogFormat
from cantata.utils.low_latency import configure_gc, shorten_time_slice

if TYPE_CHECKING:
    from cantata.config import Dtype
    from cantata.distributed.replica.host import ReplicaHost
    from cantata.pipeline.plan import ServicePlan

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    listen: str
    """HOST:PORT"""
    models: Sequence[str]
    deploy: Sequence[Path]
    dtype: Dtype | None
    key_file: Path | None
    drain_timeout_s: float
    log_format: LogFormat
    with_recognizer: bool = False
    """As in a server, one that ships comes later beside named models that do not transcribe."""
    idle_unload_s: float | None = None
    """Seconds after its last request until a model is unloaded, where its deployment does not say;
    None: never."""


def make_host(
    plans: Sequence[ServicePlan],
    later: Sequence[ServicePlan],
    listener: socket.socket,
    key_file: Path | None,
    log_format: LogFormat,
) -> ReplicaHost:
    """A replica of these models, which nothing runs before `start`.

    Args:
        plans: of `cantata.pipeline.plan.plan_services`.
        later: of `cantata.pipeline.plan.plan_recognizer`.
        listener: of `cantata.distributed.link.connecting.listen`.
        key_file: of the key that edges must have, and stage hosts; None: it is in the environment.

    Raises:
        ConfigError: a checkpoint is not valid, two models have the same name, or the address of a
            stage's host is none.
    """
    from cantata.distributed.identity import hash_identity
    from cantata.distributed.replica.host import ReplicaHost
    from cantata.pipeline.service import create_service
    from cantata.serving.remote_stages import build_remote_stages_factory

    identities = {
        plan.located.plugin.name: hash_identity(plan.located.checkpoint, plan.deployment)
        for plan in (*plans, *later)
    }
    remote_stages = build_remote_stages_factory((*plans, *later), key_file)
    service = create_service(
        *plans, later=later, log_format=log_format, remote_stages=remote_stages
    )
    spare = frozenset(plan.located.plugin.name for plan in later)
    return ReplicaHost(service, identities, listener, read_key(key_file), spare)


async def run_replica(
    options: ReplicaOptions,
    show: Callable[[str], None],
    meet: Callable[[ReplicaHost], None] = lambda host: None,
) -> None:
    """Serve edges until a signal: the first one drains, the second ends at once.

    Args:
        meet: gets the host before it starts.

    Raises:
        ConfigError: the address, the key or the models are not usable.
        StageDied: a stage ended before it was ready.
    """
    address = Address.parse(options.listen)
    check_key(read_key(options.key_file), address)
    with listen(address) as listener, stop_on_signals() as stop_event:
        from cantata.pipeline.plan import (
            plan_recognizer,
            plan_services,
            preload_stages,
            unload_when_idle,
        )

        plans = plan_services(options.models, options.deploy, options.dtype)
        later = plan_recognizer(plans) if options.with_recognizer else []
        plans = unload_when_idle(plans, options.idle_unload_s)
        later = unload_when_idle(later, options.idle_unload_s)
        preload_stages(plans)
        host = make_host(plans, later, listener, options.key_file, options.log_format)
        meet(host)
        names = ", ".join(plan.located.plugin.name for plan in (*plans, *later))
        show(f"loading {names} ...")
        for plan in plans:
            if hint := _build_hint(plan):
                show(hint)
        configure_gc()
        shorten_time_slice()
        try:
            if await run_until(stop_event, host.start()):
                show(f"replica ready on {get_address(listener)}")
                await stop_event.wait()
                stop_event.clear()
                await run_until(stop_event, host.drain(options.drain_timeout_s))
        finally:
            await host.stop()


def _build_hint(plan: ServicePlan) -> str | None:
    """That a deployment's `realtime` has no effect here, if it has one."""
    realtime = plan.deployment.realtime.model_dump(exclude_none=True)
    if not realtime:
        return None
    options = " ".join(
        f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in realtime.items()
    )
    return (
        f"{plan.located.plugin.name}: a replica ignores the deployment's section `realtime`; pass "
        f"to `cantata serve --replica` instead: {options}"
    )
