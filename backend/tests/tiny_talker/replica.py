"""A replica of the tiny talker in a process of its own, for tests that stop and kill it.

`python -m tiny_talker.replica CHECKPOINT HOST:PORT SLOTS`, with the key in the environment. It
prints its address when it is ready; SIGTERM drains it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path

from cantata.config import parse_deployment
from cantata.distributed.address import Address
from cantata.distributed.identity import hash_identity
from cantata.distributed.key import read_key
from cantata.distributed.link.connecting import listen
from cantata.distributed.replica.host import ReplicaHost
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.service import PipelineService, ServedPipeline
from cantata.pipeline.slot_policy import SlotPolicy
from cantata.pipeline.speech_model import PipelineSpeechModel
from tiny_talker.plugin import FOLLOWING, PLUGIN, TinyRequestBuilder

DRAIN_S = 60.0


async def main(folder: Path, address: Address, slots: int) -> None:
    """Serve until SIGTERM, then drain."""
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    stages = {
        "encoder": {"slots": slots},
        "talker": {"slots": slots, "max_model_len": 128},
        "decoder": {"slots": slots, "credit_s": 4.0},
    }
    deployment = parse_deployment({"stages": stages, "chunk_timeout_s": 60.0}, FOLLOWING)
    orchestrator = Orchestrator(FOLLOWING, folder, deployment, logging.WARNING)
    policy = SlotPolicy(PLUGIN.name, orchestrator)
    model = PipelineSpeechModel(TinyRequestBuilder(), policy, 20_000, False, {})
    identity = {model.name: hash_identity(folder, deployment)}
    service = PipelineService([ServedPipeline(policy, (model,))])
    host = ReplicaHost(service, identity, listen(address), read_key(None))
    await host.start()
    print(host.address, flush=True)
    await terminated.wait()
    await host.drain(DRAIN_S)
    await host.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Address.parse(sys.argv[2]), int(sys.argv[3])))
