"""The part of one pipeline that a stage host runs: checked against its own files, then planned."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cantata.config import Deployment, parse_deployment
from cantata.config.plugins import LocatedModel, list_packages
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import EdgeSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata.distributed.identity import hash_files, versions
from cantata.distributed.stages.messages import EdgeName, PipelineCommand
from cantata.distributed.stages.unix_edges import EarlyChunkBuffer, UnixEdgeWriter
from cantata.pipeline.devices import check_devices
from cantata.pipeline.launches import PlannedEdges, plan_edges, plan_launch
from cantata.pipeline.spawning import preload
from cantata.stages.process.launch import StageLaunch
from cantata.utils.logs import LogFormat

ELSEWHERE = "elsewhere"
"""Stands for the host of every stage that another machine runs."""


@dataclass(frozen=True, slots=True)
class StageLogs:
    level: int = logging.INFO
    form: LogFormat = LogFormat.TEXT


class HostedPipeline:
    """The part of a pipeline that runs here: its launches, and the ends of its edges. `here`: the
    stages that run on this machine."""

    def __init__(
        self, located: LocatedModel, deployment: Deployment, here: tuple[str, ...], logs: StageLogs
    ) -> None:
        self.here = here
        """The stages that run on this machine."""
        self.packages = list_packages(located.plugin)
        """Packages whose dataclasses its stages take as inputs."""
        self.silence_s = deployment.chunk_timeout_s
        """Seconds of silence after which requests fail."""
        self._spec = located.pipeline
        self._checkpoint, self._logs = located.checkpoint, logs
        self._deployment = deployment
        others = {spec.name for spec in self._spec.stages} - set(here)
        self._edges: PlannedEdges = plan_edges(self._spec, dict.fromkeys(others, ELSEWHERE))
        self._outlets: dict[EdgeSpec, UnixEdgeWriter] = {}
        self._parkings: dict[EdgeSpec, EarlyChunkBuffer] = {}
        for crossing in self._edges.crossing:
            if crossing.address is not None:
                outlet = self._outlets[crossing.edge] = UnixEdgeWriter(crossing.address)
                self._parkings[crossing.edge] = EarlyChunkBuffer(outlet.put)

    def preload(self) -> None:
        """Begin to import what the stages here need, in a separate process; returns at once."""
        stages = self._deployment.stages
        preload((self._spec.stage(name), stages[name]) for name in self.here)

    def launch(self, stage: str) -> StageLaunch:
        """How to start a stage that runs here. Raises ConfigError: it does not run here."""
        if stage not in self.here:
            raise ConfigError(f"this host runs the stages {list(self.here)}, not {stage!r}")
        return plan_launch(
            stage,
            self._spec,
            self._edges,
            self._checkpoint,
            self._deployment,
            self._logs.level,
            self._logs.form,
        )

    def registered(self, stage: str, request_id: str) -> None:
        """A stage can read a request's registration: its chunks may follow."""
        for edge in self._spec.get_inputs(stage):
            if edge in self._parkings:
                self._parkings[edge].registered(request_id)

    def inlet(self, name: EdgeName) -> EarlyChunkBuffer:
        """Where to put chunks that arrive for a stage here. Raises ConfigError: there is no such
        edge."""
        edge = EdgeSpec(name.source, name.target)
        if edge not in self._parkings:
            raise ConfigError(f"no edge {name.source} -> {name.target} arrives here")
        return self._parkings[edge]

    def get_exit(self, name: EdgeName) -> socket.socket:
        """The listening socket to which a stage here connects that feeds one elsewhere. Raises
        ConfigError: there is no such edge."""
        for crossing in self._edges.crossing:
            if crossing.edge == EdgeSpec(name.source, name.target) and crossing.listener:
                return crossing.listener
        raise ConfigError(f"no edge {name.source} -> {name.target} leaves this host")

    async def close(self) -> None:
        """Close every socket; no stage may be running."""
        for early_chunks in self._parkings.values():
            early_chunks.close()
        for outlet in self._outlets.values():
            await outlet.close()
        for listener in self._edges.listeners.values():
            listener.close()


def plan_hosted(
    command: PipelineCommand, plugins: Mapping[str, ModelPlugin], logs: StageLogs
) -> HostedPipeline:
    """Check that this machine has the same model as the server, and plan its stages.

    Args:
        plugins: the models that this host has, by name.

    Raises:
        ConfigError: it cannot run the stages, or they would not make the server's samples.
    """
    plugin = plugins.get(command.model)
    if plugin is None:
        raise ConfigError(f"model {command.model!r} is not installed; installed: {sorted(plugins)}")
    located = LocatedModel(plugin, _find_folder(command, plugin))
    _check_identity(command, located.checkpoint)
    where = f"the server's deployment of {command.model!r}"
    deployment = parse_deployment(command.deployment, located.pipeline, where)
    unknown = set(command.here) - set(deployment.stages)
    if unknown or not command.here:
        raise ConfigError(f"{where} has no stages {sorted(unknown)} for this host")
    stages = {
        name: stage.model_copy(update={"host": None if name in command.here else ELSEWHERE})
        for name, stage in deployment.stages.items()
    }
    placed = deployment.model_copy(update={"stages": stages})
    check_devices(placed)
    return HostedPipeline(located, placed, command.here, logs)


def _find_folder(command: PipelineCommand, plugin: ModelPlugin) -> Path:
    folder = plugin.embedded_checkpoint if command.checkpoint is None else Path(command.checkpoint)
    if folder is None:
        raise ConfigError(f"model {command.model!r} has no embedded weights here")
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; a model has the same path on all its machines")
    return folder


def _check_identity(command: PipelineCommand, checkpoint: Path) -> None:
    mine = versions()
    if dict(command.versions) != dict(mine):
        raise ConfigError(
            f"it runs {_format_list(mine)}, and the server {_format_list(command.versions)}"
        )
    if hash_files(checkpoint) != command.files:
        raise ConfigError(f"the files in {checkpoint} are not the server's")


def _format_list(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(packages.items()))
