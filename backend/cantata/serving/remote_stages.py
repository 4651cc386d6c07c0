"""Who runs the stages that deployments put on other machines."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cantata.distributed.key import read_key

if TYPE_CHECKING:
    from cantata.pipeline.plan import ServicePlan
    from cantata.pipeline.remote_stages import RemoteStagesFactory


def build_remote_stages_factory(
    plans: Iterable[ServicePlan], key_file: Path | None
) -> RemoteStagesFactory | None:
    """Makes what runs them; None: no stage names a host, and nothing of a cluster is imported.

    Args:
        key_file: of the key that stage hosts ask for; None: it is in the environment, if needed.

    Raises:
        ConfigError: the key cannot be read.
    """
    if not any(plan.deployment.hosts for plan in plans):
        return None
    from cantata.distributed.stages.pipeline import StagesOnHosts

    return partial(StagesOnHosts, key=read_key(key_file))
