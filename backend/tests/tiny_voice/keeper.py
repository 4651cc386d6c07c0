"""A server that keeps jobs, for tests that kill it: `python -m tiny_voice.keeper FOLDER`.

The folder gets the voice's file and the jobs. It prints its address when it can speak.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from cantata.api.app import create_app
from cantata.api.server.listening import get_url, listen
from cantata.api.server.serve import serve
from cantata.api.settings import JobSettings, ServerSettings
from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from tiny_voice.onnx_file import write_voice
from tiny_voice.plugin import PLUGIN


async def main(folder: Path) -> None:
    """Serve until a signal ends it."""
    await asyncio.to_thread(write_voice, folder)
    located = LocatedModel(PLUGIN, folder)
    deployment = load_deployment(PLUGIN.deployment, PLUGIN.pipeline)
    plan = ServicePlan(located, PLUGIN.pipeline, deployment)
    settings = ServerSettings(jobs=JobSettings(folder / "jobs"))
    with listen("127.0.0.1", 0) as listener:
        app = create_app(create_service(plan), settings)
        await serve(app, listener, lambda: print(get_url(listener), flush=True))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
