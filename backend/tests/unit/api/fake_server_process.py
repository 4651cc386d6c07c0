"""`python fake_server_process.py OPTIONS`: a real server process over the fake service.

OPTIONS is JSON: `connections`, `voices_dir` and `consent` are settings of the server, `behaviour`
of the fake model (which follows recordings if a consent is asked for), `port` is one to share (0: a
free one), `pages` adds the page and Gradio. It prints its address, and lets utterances sound once
it reads a line. In a process of its own, signals and limits of the operating system meet the server
alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from fake_service import FakeService

from cantata.api.app import create_app, mount_pages
from cantata.api.server.listening import bound, get_url, listen
from cantata.api.server.serve import serve
from cantata.api.settings import ConnectionSettings, ReferenceSettings, ServerSettings
from cantata.contract.data.capabilities import Capabilities


async def main(options: dict[str, Any]) -> None:
    service = FakeService()
    service.solo.behaviour.may_sound = may_sound = asyncio.Event()
    for name, value in options.get("behaviour", {}).items():
        setattr(service.solo.behaviour, name, value)
    if "consent" in options:
        service.solo.capabilities = Capabilities(references=True)
    voices_dir = options.get("voices_dir")
    settings = ServerSettings(
        connections=ConnectionSettings(**options.get("connections", {})),
        references=ReferenceSettings(
            voices_dir=Path(voices_dir) if voices_dir else None,
            consent=options.get("consent", "none"),
        ),
    )
    app = create_app(service, settings)
    if options.get("pages", False):
        mount_pages(app)
    if (port := options.get("port")) is None:
        listener = listen("127.0.0.1", 0)
    else:
        listener = bound("127.0.0.1", port, shared=True)

    def on_line() -> None:
        if not sys.stdin.readline():
            asyncio.get_running_loop().remove_reader(sys.stdin)
        may_sound.set()

    asyncio.get_running_loop().add_reader(sys.stdin, on_line)
    await serve(app, listener, lambda: print(get_url(listener), flush=True))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
