"""The process of one stage, or of several that share it: configuration, start and end."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from setproctitle import setproctitle

from cantata.config import KINDS, StageDeployment
from cantata.contract.data.errors import CantataError
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.process.messages import CannotStart, LoadNow, MemoryNeeds, Ready
from cantata.contract.process.stage import Stage
from cantata.ipc.connectors import ChunkSender, MemoryReceiver, MemorySender, SocketSender
from cantata.ipc.shared_heartbeat import SharedHeartbeat, receive_memory
from cantata.ipc.stage_messages import decode_message, encode_message
from cantata.ipc.wire import BlockingChannel
from cantata.stages.common.lifeline import exit_when_closed
from cantata.stages.process.exchange import Exchange
from cantata.stages.process.loop import StageLoop
from cantata.stages.process.memory_needs import measure_stage
from cantata.stages.process.together import ResidentStage, run_together
from cantata.utils.gpus import number_as_driver, see_gpus
from cantata.utils.logs import LogFormat, configure_logging

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageLaunch:
    title: str
    """Process name, such as `cantata:talker:0`; a shared process has the names of all its
    stages."""
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
    reports_needs: bool
    """It says what it will hold, and loads once the server answers."""
    log_level: int
    log_format: LogFormat


def run(launches: Sequence[StageLaunch], control_sockets: Sequence[socket.socket]) -> None:
    """Entry point of the process of one stage, or of several that share it; returns when they are
    drained or when the server has exited.

    Args:
        launches: of the stages. They load in this order; the first has the main thread.
        control_sockets: each connected to the server's end for its stage.
    """
    for control_socket in control_sockets:
        exit_when_closed(control_socket.fileno())
    try:
        heartbeats = [
            SharedHeartbeat(receive_memory(control), compiles=launch.deployment.on_gpu)
            for launch, control in zip(launches, control_sockets, strict=True)
        ]
        _settle_in(launches)
        controls = [BlockingChannel(control) for control in control_sockets]
        _wait_for_memory(launches, controls)
        # WHY not at the same time: vLLM loads with a default dtype of its own, which is everyone's.
        stages = [_build_stage(launch, controls) for launch in launches]
        for stage, control in zip(stages, controls, strict=True):
            control.send(*encode_message(Ready(stage.capacity)))
        # What is loaded stays until the end: garbage collections, even at exit, may skip it.
        gc.freeze()
        inner = join_edges(launches)
        residents = [
            ResidentStage(
                launch.spec.name,
                StageLoop(stage, _build_exchange(launch, control, inner), heartbeat),
                heartbeat,
            )
            for launch, stage, control, heartbeat in zip(
                launches, stages, controls, heartbeats, strict=True
            )
        ]
        run_together(residents, on_gpu=launches[0].deployment.on_gpu)
    except ConnectionError as error:
        logger.info("the server has exited: %s", error)
    # Tearing the interpreter down takes seconds and frees nothing that an exit does not.
    logging.shutdown()
    os._exit(0)


def join_edges(launches: Sequence[StageLaunch]) -> Mapping[bytes, MemoryReceiver]:
    """The edges that both begin and end with one of these stages, by the address that they would
    have between processes."""
    begun = {
        address.encode()
        for launch in launches
        for addresses in launch.outputs.values()
        for address in addresses
    }
    ended = {listener.getsockname() for launch in launches for listener in launch.inputs}
    return {address: MemoryReceiver() for address in begun & ended}


def _build_exchange(
    launch: StageLaunch, control: BlockingChannel, inner: Mapping[bytes, MemoryReceiver]
) -> Exchange:
    def begin(address: str) -> ChunkSender:
        receiver = inner.get(address.encode())
        return SocketSender(address) if receiver is None else MemorySender(receiver)

    return Exchange(
        launch.spec,
        control,
        [inner.get(listener.getsockname(), listener) for listener in launch.inputs],
        {port: [*map(begin, addresses)] for port, addresses in launch.outputs.items()},
        launch.client_ports,
        async_chunk=launch.async_chunk,
    )


def build_stage(spec: StageSpec, checkpoint: Path, deployment: StageDeployment) -> Stage:
    """Build a stage of any kind; each kind is imported only in the processes that run it."""
    build: Callable[[StageSpec, Path, StageDeployment], Stage] = resolve(KINDS[spec.kind].builder)
    return build(spec, checkpoint, deployment)


def _build_stage(launch: StageLaunch, controls: Iterable[BlockingChannel]) -> Stage:
    """The stage. If it cannot be had as it is deployed, the server is told why, of every stage of
    this process, and the process ends; other errors are faults of the stage, and leave a
    traceback."""
    try:
        return build_stage(launch.spec, launch.checkpoint, launch.deployment.on_its_gpu())
    except CantataError as error:
        for control in controls:
            control.send(*encode_message(CannotStart(error.message)))
        logging.shutdown()
        os._exit(1)


def _wait_for_memory(launches: Sequence[StageLaunch], controls: Sequence[BlockingChannel]) -> None:
    """Tell the server what the stages will hold, and wait until there is room for that. Raises
    ConnectionError: there is none, or the server has exited."""
    asking = [
        (launch, control)
        for launch, control in zip(launches, controls, strict=True)
        if launch.reports_needs
    ]
    for launch, control in asking:
        deployment = launch.deployment.on_its_gpu()
        needs = measure_stage(launch.spec, launch.checkpoint, deployment)
        control.send(*encode_message(MemoryNeeds(needs)))
    for _, control in asking:
        answer = decode_message(control.receive())
        assert isinstance(answer, LoadNow), "nothing else comes before the model is loaded"


def _settle_in(launches: Sequence[StageLaunch]) -> None:
    """What is the process's: the first stage's settings; what the others share with it is checked
    with the deployment."""
    first, names = launches[0], [launch.spec.name for launch in launches]
    title = first.title.replace(f":{names[0]}:", f":{'+'.join(names)}:")
    setproctitle(title)
    if first.deployment.on_gpu:
        number_as_driver()
    if first.deployment.gpu is not None:
        see_gpus(first.deployment.gpu, first.deployment.num_gpus)
    configure_logging(first.log_level, first.log_format, title)
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
