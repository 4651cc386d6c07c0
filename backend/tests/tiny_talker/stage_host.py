"""A stage host in a process of its own, which knows the tests' models beside the installed ones.

`python -m tiny_talker.stage_host HOST:PORT`, with the key in the environment. It says when it is
ready; SIGTERM drains it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace

from cantata.config.plugins import load_plugins
from cantata.serving.stage_host import StageHostOptions, run_stage_host
from cantata.utils.logs import LogFormat, configure_logging
from tiny_painter import scribe
from tiny_talker import latent_plugin
from tiny_talker.plugin import AUDIBLE, ENCODED, PLUGIN

DRAIN_S = 60.0
LOUD = replace(PLUGIN, name="tiny-loud", pipeline=AUDIBLE)
LED = replace(PLUGIN, name="tiny-led", pipeline=ENCODED)
PLUGINS = {one.name: one for one in (PLUGIN, LOUD, LED, latent_plugin.PLUGIN, scribe.PLUGIN)}


async def main(listen: str) -> None:
    """Until SIGTERM."""
    options = StageHostOptions(listen, None, DRAIN_S, LogFormat.TEXT)
    plugins = {**load_plugins(), **PLUGINS}
    await run_stage_host(options, lambda line: print(line, flush=True), plugins)


if __name__ == "__main__":
    configure_logging(logging.WARNING, LogFormat.TEXT, "cantata:stage-host")
    asyncio.run(main(sys.argv[1]))
