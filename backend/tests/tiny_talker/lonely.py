"""A server's process that tests kill: `python -m tiny_talker.lonely CHECKPOINT`.

It prints its port when its stages start to load, and `ready` when they are.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from cantata.api.server.listening import listen
from cantata.config import parse_deployment
from cantata.pipeline.orchestrator import Orchestrator
from tiny_talker.plugin import PIPELINE


async def main(folder: Path) -> None:
    """Start, report, stay."""
    listener = listen("127.0.0.1", 0)
    stages = {"talker": {"slots": 2, "max_model_len": 128}, "decoder": {"slots": 2}}
    deployment = parse_deployment({"stages": stages}, PIPELINE)
    orchestrator = Orchestrator(PIPELINE, folder, deployment, logging.CRITICAL)
    starting = asyncio.create_task(orchestrator.start())
    while len([s for s in orchestrator.stages.values() if s.pid]) < len(PIPELINE.stages):
        if starting.done():
            await starting  # it failed: say why
        await asyncio.sleep(0.01)
    print(listener.getsockname()[1], flush=True)
    await starting
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
