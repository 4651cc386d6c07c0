"""The process of a rank other than 0: does what rank 0 says, and ends with it.

Run as `python -m cantata.stages.diffusion.ranks.main DESCRIPTOR`, where the descriptor is one end
of a connected socket.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from setproctitle import setproctitle

from cantata.contract.data.errors import CantataError
from cantata.contract.model.denoiser import Denoiser
from cantata.contract.model.factory import resolve
from cantata.stages.common.lifeline import exit_when_closed
from cantata.stages.common.ranks import Loaded, join
from cantata.stages.diffusion.ranks.group import Advance, Begin, Forget, LoadModel, RankMessage
from cantata.stages.diffusion.stage import NICENESS


def main(arguments: Sequence[str]) -> None:
    """Serve until rank 0 closes the connection."""
    connection = Connection(int(arguments[0]))
    exit_when_closed(connection.fileno())
    load = connection.recv()
    setproctitle(load.title)
    # Rank 0 computes in a thread that is as nice.
    os.nice(NICENESS)
    try:
        model = _load_model(load)
    except CantataError as error:
        connection.send(Loaded(error))
        return
    connection.send(Loaded(None))
    jobs: dict[int, Any] = {}
    while True:
        _handle(model, jobs, connection.recv())


def _load_model(load: LoadModel) -> Denoiser:
    options = load.options
    assert options.ranks is not None
    join(options.ranks.rank, options.ranks.size, options.device, load.store_port, None)
    model: Denoiser = resolve(load.factory)(Path(load.checkpoint), options)
    return model


@torch.inference_mode()
def _handle(model: Denoiser, jobs: dict[int, Any], message: RankMessage) -> None:
    """A `CantataError` is raised by all ranks alike, and rank 0 reports it. Anything else ends this
    process, and the stage with it: the ranks no longer hold the same."""
    with suppress(CantataError):
        match message:
            case Begin(number, inputs, arrived):
                jobs[number] = model.begin(inputs, arrived)
            case Advance(numbers):
                model.advance([jobs[number] for number in numbers])
            case Forget(number):
                del jobs[number]


if __name__ == "__main__":
    main(sys.argv[1:])
