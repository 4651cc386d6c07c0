"""What a stage's loop takes in between two steps, and in which order."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import numpy as np
import pytest

from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.request import StageInput
from cantata.contract.process.messages import (
    Abort,
    DrainStage,
    Register,
)
from cantata.contract.process.stage import StepResult
from cantata.ipc.connectors import SocketSender, listen, make_address
from cantata.stages.process.loop import StageLoop
from stage_chunks import codes_chunk
from stage_loops import (
    ControlEnd,
    EchoStage,
    build_exchange,
    heartbeat,
)


class SpeakingStage(EchoStage):
    """In the middle of speaking; records the order of calls. By its clock only taking in a request
    takes any time."""

    def __init__(self, frames: int, intake_s: float = 0.0) -> None:
        super().__init__()
        self.intake_s, self.now_s = intake_s, 0.0
        codes = np.ones((1, 1), np.int32)
        self.pending = [codes_chunk("speaker", index, codes, False) for index in range(frames)]
        self.calls: list[str] = []

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        self.calls.append(request_id)
        self.now_s += self.intake_s

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        self.calls.append("chunks")

    def step(self) -> StepResult:
        self.calls.append("step")
        return super().step()


@pytest.mark.parametrize(
    ("intake_s", "calls"),
    [
        (1.0, ["n0", "step", "n1", "step", "n2"]),
        (0.15, ["n0", "n1", "step", "n2"]),
        (0.0, ["n0", "n1", "n2", "step"]),
    ],
)
def test_new_requests_do_not_delay_running_streams(intake_s: float, calls: list[str]) -> None:
    """A frame lasts a second."""
    ours, theirs = socket.socketpair()
    control, stage = ControlEnd(ours), SpeakingStage(9, intake_s)
    for number in range(3):
        control.send(Register(f"n{number}", None, False))
    control.send(DrainStage())
    StageLoop(stage, build_exchange(theirs), heartbeat(), lambda: stage.now_s).run()
    assert stage.calls[: len(calls)] == calls
    control.close()


def test_new_requests_precede_streams_with_sound_left_and_aborted_ones_are_skipped() -> None:
    """Taking in a request lasts as long as a frame: one between two steps."""
    ours, theirs = socket.socketpair()
    control, stage = ControlEnd(ours), SpeakingStage(9, intake_s=1.0)
    control.send(Register("next piece", None, False, playout_deadline_s=1000.0))
    control.send(Register("gone", None, False))
    control.send(Register("new", None, False))
    control.send(Abort(("gone",)))
    control.send(DrainStage())
    StageLoop(stage, build_exchange(theirs), heartbeat(), lambda: stage.now_s).run()
    assert [call for call in stage.calls if call != "step"] == ["new", "next piece"]
    assert stage.calls[:3] == ["new", "step", "next piece"]
    control.close()


def test_all_chunks_that_have_arrived_are_there_for_the_next_step() -> None:
    """A stage slower than the one before it must find a new stream's chunk behind all others."""
    ours, theirs = socket.socketpair()
    control, stage = ControlEnd(ours), SpeakingStage(frames=1)
    address = make_address("edge")
    listener, upstream = listen(address), SocketSender(address)
    for index in range(5):
        upstream.put([codes_chunk("speaker", index, np.ones((1, 1), np.int32), False)])
    control.send(DrainStage())
    StageLoop(stage, build_exchange(theirs, listener), heartbeat()).run()
    assert stage.calls == ["chunks"] * 5 + ["step"]
    control.close()
    upstream.close()
