"""A replica in a process of its own that dies of a certain text, as one does that needs too much
memory.

`python fragile_replica.py`, with the key in the environment. It prints its address when it is
ready. The fake model speaks; host, links and the death are real.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "api"))

from fake_service import FakeModel, FakeService

from cantata.contract.service import SpeechChunk
from cantata.distributed.address import Address
from cantata.distributed.key import read_key
from cantata.distributed.link.connecting import listen
from cantata.distributed.replica.host import ReplicaHost

POISON = "poison"
CHUNK_SAMPLES = 4_800
INTERVAL_S = 0.01
DIES_AT = 4
"""Chunks of the fatal text; 77 KB have been sent by then."""


class FragileModel(FakeModel):
    """Ends its process in the middle of a text."""

    async def _pcm(self, text: str, ended: list[bool]) -> AsyncIterator[SpeechChunk]:
        made = 0
        async for chunk in super()._pcm(text, ended):
            yield chunk
            made += 1
            if POISON in text and made == DIES_AT:
                # The samples so far are on their way once the loop has turned.
                asyncio.get_running_loop().call_later(
                    INTERVAL_S / 2, os.kill, os.getpid(), signal.SIGKILL
                )


def fragile_service() -> FakeService:
    """Serves the model as `solo`."""
    service = FakeService()
    model = FragileModel("solo", instructions=True)
    model.behaviour.chunk_samples, model.behaviour.interval_s = CHUNK_SAMPLES, INTERVAL_S
    service.solo = model
    service.models = {**service.models, "solo": model}
    return service


async def main() -> None:
    """Serve until killed."""
    service = fragile_service()
    names = (
        *service.models,
        *service.chat_models,
        *service.image_models,
        *service.transcription_models,
    )
    listener = listen(Address("127.0.0.1", 0))
    host = ReplicaHost(service, dict.fromkeys(names, "the same"), listener, read_key(None))
    await host.start()
    print(host.address, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
