"""The tiny talker with a decoder that injects the fault a text names, and clocks that jump.

A text that holds `FAULT:exit` (or another of `FAULTS`) ends, stops or confuses the decoder's
process as soon as it is decoded. The wall clocks of both processes jump by a day at each read.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from cantata.contract.data.request import PipelineRequest, SpeechRequest
from cantata.contract.model.pipeline import StageKind, StageSpec
from tiny_talker.checkpoint import NUM_CODEBOOKS
from tiny_talker.decoder import RunningSumDecoder
from tiny_talker.plugin import TinyRequestBuilder, pipeline_with

MARK = 1000
"""Codes from here on are faults."""
HANG_FILE = "hang"
"""In the checkpoint folder: the decoder's loading never ends."""
DAY_S = 86_400.0
MAX_ALLOCATED = 256 << 20
"""Bytes."""


def _exit() -> None:
    os._exit(3)


def _abort() -> None:
    os.abort()


def _sleep() -> None:
    time.sleep(3600)


def _spin() -> None:
    while True:
        pass


def _raise() -> None:
    raise MemoryError("as much as there is")


def _allocate() -> None:
    """Use more memory than the process may, but never the whole machine's."""
    held = [bytearray(os.urandom(1 << 20)) for _ in range(MAX_ALLOCATED >> 20)]
    raise AssertionError(f"the kernel allowed {len(held)} MiB")


def _garbage() -> None:
    """Write an invalid message on every connected socket, the server's among them."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as one:
                    one.send(b"garbage " * 4, socket.MSG_DONTWAIT)
        except OSError:
            continue


FAULTS: Mapping[str, Callable[[], None]] = {
    "exit": _exit,
    "abort": _abort,
    "sleep": _sleep,
    "spin": _spin,
    "raise": _raise,
    "allocate": _allocate,
    "garbage": _garbage,
}


def let_the_clock_jump() -> None:
    """A day on, a day back, and so on."""
    real, looks = time.time, iter(range(1 << 62))
    time.time = lambda: real() + (DAY_S if next(looks) % 2 else -DAY_S)


class FaultyDecoder(RunningSumDecoder):
    codebook_size = MARK + len(FAULTS)

    def decode(self, state: torch.Tensor, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        if int(codes.max()) >= MARK:
            list(FAULTS.values())[int(codes.max()) - MARK]()
        return super().decode(state, slots, codes)


def load_faulty_decoder(checkpoint: Path, device: torch.device) -> FaultyDecoder:
    let_the_clock_jump()
    while (checkpoint / HANG_FILE).exists():
        time.sleep(0.05)
    return FaultyDecoder()


class FaultyRequestBuilder(TinyRequestBuilder):
    """Marks frames that continue a fault."""

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        pieces = super().build(request_id, request)
        fault = re.search(r"FAULT:(\w+)", request.text)
        if fault is None:
            return pieces
        code = MARK + list(FAULTS).index(fault[1])
        talker: Any = pieces[0].inputs["talker"]
        marked = replace(talker, context=[[code] * NUM_CODEBOOKS])
        return (replace(pieces[0], inputs={"talker": marked}), *pieces[1:])


FAULTY = replace(
    pipeline_with("TinyTalker", "load_decoder"),
    stages=(
        StageSpec("talker", StageKind.AR, "tiny_talker.faulty_talker:JumpyTalker"),
        StageSpec("decoder", StageKind.CODEC, "tiny_talker.faulty:load_faulty_decoder"),
    ),
)
