"""The process of a rank other than 0: does what rank 0 says, and ends with it.

Run as `python -m cantata.stages.ar.ranks.main DESCRIPTOR`, where the descriptor is one end of a
connected socket.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from setproctitle import setproctitle

from cantata.contract.data.errors import CantataError
from cantata.contract.process.stage import Stage
from cantata.stages.ar.ranks.share import RankCall, load_share
from cantata.stages.common.lifeline import exit_when_closed
from cantata.stages.common.ranks import Loaded


def main(arguments: Sequence[str]) -> None:
    """Serve until rank 0 closes the connection."""
    connection = Connection(int(arguments[0]))
    exit_when_closed(connection.fileno())
    load = connection.recv()
    setproctitle(load.title)
    try:
        stage = load_share(load, None)
    except CantataError as error:
        connection.send(Loaded(error))
        return
    connection.send(Loaded(None))
    while True:
        obey(stage, connection.recv())


def obey(stage: Stage, call: RankCall) -> None:
    """Make the call, and drop what it returns: rank 0 has the same. A `CantataError` is raised by
    all ranks alike. Anything else ends this process, and the stage with it: the ranks no longer
    hold the same."""
    with suppress(CantataError):
        getattr(stage, call.method)(*call.args, **call.kwargs)


if __name__ == "__main__":
    main(sys.argv[1:])
