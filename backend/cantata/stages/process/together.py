"""The loops of several stages in one process: one in its main thread, a thread for each other.

On a GPU they share one CUDA context, which runs the kernels of both at once; those of two processes
take turns. A fault of one ends the process, and so all of them.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NoReturn

from cantata.ipc.shared_heartbeat import SharedHeartbeat
from cantata.stages.process.loop import StageLoop

logger = logging.getLogger(__name__)

FAULT = 1
"""Exit code."""
SWITCH_INTERVAL_S = 0.0005
"""For which a thread may keep Python's lock while the other waits. WHY: by default it is 5 ms, as
long as a step."""
_HIGH_PRIORITY = -1
"""Of a CUDA stream; the usual one has 0."""


@dataclass(frozen=True, slots=True)
class ResidentStage:
    """One of the stages, loaded."""

    name: str
    loop: StageLoop
    heartbeat: SharedHeartbeat


def run_together(stages: Sequence[ResidentStage], *, on_gpu: bool) -> None:
    """Run the loops until all are drained.

    Args:
        stages: the first has this thread.
        on_gpu: they use a GPU, the same one.

    Raises:
        ConnectionError: the server has exited. A stage alone raises its own fault, too; that of one
            among others ends the process.
    """
    first, *others = stages
    if not others:
        first.loop.run()
        return
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    if on_gpu:
        _wait_for_gpu()
    work = _on_own_stream if on_gpu else nullcontext
    threads = [
        threading.Thread(
            target=_run_beside, args=(stage, stages, work), name=stage.name, daemon=True
        )
        for stage in others
    ]
    for thread in threads:
        thread.start()
    _run_beside(first, stages, nullcontext)
    for thread in threads:
        thread.join()


def _run_beside(
    stage: ResidentStage,
    stages: Sequence[ResidentStage],
    work: Callable[[], AbstractContextManager[object]],
) -> None:
    """Run one loop to its end. `stages`: all of the process."""
    try:
        with work():
            stage.loop.run()
    except ConnectionError as error:
        logger.info("the server has exited: %s", error)
        _end_process(0)
    except BaseException:
        logger.exception("a fault of stage %r; the process ends", stage.name)
        for other in stages:
            if other is not stage:
                # The server suspects the requests of calls that a process died in.
                other.heartbeat.clear_call()
        _end_process(FAULT)


def _end_process(code: int) -> NoReturn:
    logging.shutdown()
    os._exit(code)


def _wait_for_gpu() -> None:
    """What the stages have loaded is there for every stream."""
    import torch

    torch.cuda.synchronize()


def _on_own_stream() -> AbstractContextManager[object]:
    """A stream before whose kernels those of the first stage wait: the stages behind that one have
    short steps, and a listener waits for their output next."""
    import torch

    return torch.cuda.stream(torch.cuda.Stream(priority=_HIGH_PRIORITY))  # type: ignore[no-untyped-call]
