"""The process of one stage: its configuration, start and end."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from setproctitle import setproctitle

from cantata.config import KINDS, StageDeployment
from cantata.contract.data.errors import CantataError
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.process.messages import CannotStart, Ready
from cantata.contract.process.stage import Stage
from cantata.ipc.connectors import SocketSender
from cantata.ipc.shared_heartbeat import SharedHeartbeat, receive_memory
from cantata.ipc.stage_messages import encode_message
from cantata.ipc.wire import BlockingChannel
from cantata.stages.common.lifeline import exit_when_closed
from cantata.stages.process.exchange import Exchange
from cantata.stages.process.loop import StageLoop
from cantata.utils.gpus import see_one_gpu
from cantata.utils.logs import LogFormat, configure_logging

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageLaunch:
    """The configuration of a stage process."""

    title: str
    """Process name, such as `cantata:talker:0`."""
    spec: StageSpec
    checkpoint: Path
    deployment: StageDeployment
    async_chunk: bool
    inputs: tuple[socket.socket, ...]
    """Listening sockets, one for each edge that ends here."""
    outputs: Mapping[str, tuple[str, ...]]
    """By port, the listening addresses of the edges that start there."""
    client_ports: tuple[str, ...]
    """The ports whose chunks the server gets."""
    log_level: int
    log_format: LogFormat


def run(launch: StageLaunch, control_socket: socket.socket) -> None:
    """Entry point of a stage process; returns when drained or when the server has exited.

    Args:
        control_socket: connected to the server.
    """
    exit_when_closed(control_socket.fileno())
    try:
        heartbeat = SharedHeartbeat(receive_memory(control_socket))
        _settle_in(launch)
        control = BlockingChannel(control_socket)
        outputs = {
            port: [SocketSender(address) for address in addresses]
            for port, addresses in launch.outputs.items()
        }
        stage = _build_stage(launch, control)
        control.send(*encode_message(Ready(stage.capacity)))
        # What is loaded stays until the end: garbage collections, even at exit, may skip it.
        gc.freeze()
        exchange = Exchange(
            launch.spec,
            control,
            launch.inputs,
            outputs,
            launch.client_ports,
            async_chunk=launch.async_chunk,
        )
        StageLoop(stage, exchange, heartbeat).run()
    except ConnectionError as error:
        logger.info("the server has exited: %s", error)
    # Tearing the interpreter down takes seconds and frees nothing that an exit does not.
    logging.shutdown()
    os._exit(0)


def build_stage(spec: StageSpec, checkpoint: Path, deployment: StageDeployment) -> Stage:
    """Build a stage of any kind; each kind is imported only in the processes that run it."""
    build: Callable[[StageSpec, Path, StageDeployment], Stage] = resolve(KINDS[spec.kind].builder)
    return build(spec, checkpoint, deployment)


def _build_stage(launch: StageLaunch, control: BlockingChannel) -> Stage:
    """The stage. If it cannot be had as it is deployed, the server is told why and this process
    ends; other errors are faults of the stage, and leave a traceback."""
    try:
        return build_stage(launch.spec, launch.checkpoint, launch.deployment.on_its_gpu())
    except CantataError as error:
        control.send(*encode_message(CannotStart(error.message)))
        logging.shutdown()
        os._exit(1)


def _settle_in(launch: StageLaunch) -> None:
    setproctitle(launch.title)
    if launch.deployment.gpu is not None:
        see_one_gpu(launch.deployment.gpu)
    configure_logging(launch.log_level, launch.log_format, launch.title)
    # Ctrl-C reaches the whole process group; the server decides when its stages end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settle_threads()


def settle_threads() -> None:
    """Load torch, and give it as many threads as a stage has."""
    load_torch()
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def load_torch() -> None:
    """Import torch, with what it and OpenMP read from the environment as they are loaded."""
    # One thread per process: idle OpenMP threads spin and starve other processes. Users with
    # idle cores can set the variable.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Read when torch is loaded; its C++ side warns of the NUMA binding that vLLM asks for.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    import torch  # noqa: F401
