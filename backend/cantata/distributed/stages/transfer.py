"""Stage messages and chunks on a link. A message is the bytes of `ipc.stage_messages` behind the
sender's clock, because machines' clocks differ."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Collection

from cantata.contract.process.messages import (
    Abort,
    Aborted,
    Credit,
    Extend,
    Failed,
    Output,
    Register,
    StepMeasured,
)
from cantata.distributed.link.errors import ProtocolError
from cantata.distributed.link.frames import END
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.stages.messages import StageFrameKind
from cantata.distributed.stages.unix_edges import Take
from cantata.ipc.encoded import EncodedChunks
from cantata.ipc.stage_messages import decode_message, encode_message
from cantata.ipc.wire import BrokenChannel, Buffer

_SECONDS = struct.Struct("!d")
StageCommand = Register | Extend | Abort | Credit
"""For a stage, about requests."""
StageEvent = Output | Failed | Aborted | StepMeasured
"""Of a stage, about requests and its steps."""


def encode_for_link(message: StageCommand | StageEvent) -> tuple[Buffer, ...]:
    """Return the body of a frame that is sent now. Raises TypeError: a stage's input holds what
    cannot be sent."""
    return _SECONDS.pack(time.monotonic()), *encode_message(message)


def decode_command(body: Buffer, packages: Collection[str]) -> StageCommand:
    """Return the command in the body of a frame that has just arrived.

    Args:
        body: of `encode_for_link`.
        packages: as `input_values.unflatten`'s.

    Raises:
        ProtocolError: it is none.
    """
    message = _decode(body, packages)
    if not isinstance(message, StageCommand):
        raise ProtocolError(f"what arrived is no command: {type(message).__name__}")
    return message


def decode_event(body: Buffer) -> StageEvent:
    """Return the event in the body of a frame that has just arrived. Raises ProtocolError: it is
    none."""
    message = _decode(body, ())
    if not isinstance(message, StageEvent):
        raise ProtocolError(f"what arrived is no event: {type(message).__name__}")
    return message


def _decode(body: Buffer, packages: Collection[str]) -> object:
    if len(body) < _SECONDS.size:
        raise ProtocolError(f"what arrived is no message of a stage, but {len(body)} bytes")
    [sent_s] = _SECONDS.unpack_from(body)
    if not math.isfinite(sent_s):
        raise ProtocolError(f"what arrived has a clock that shows {sent_s}")
    content = memoryview(body)[_SECONDS.size :]
    try:
        return decode_message(content, packages, time.monotonic() - sent_s)
    except BrokenChannel as error:
        raise ProtocolError(str(error)) from error


async def send_chunks(stream: LinkStream, encoded: EncodedChunks) -> None:
    """Send one message, once there is credit for it. Raises LinkLost: it cannot arrive any more."""
    await stream.send(StageFrameKind.CHUNKS, *encoded.parts_for_link)


async def forward_chunks(stream: LinkStream, take: Take) -> None:
    """Pass on what arrives, until the other end has ended.

    Args:
        take: raises BrokenChannel for what are no chunks, which ends the link.

    Raises:
        LinkLost: nothing more arrives.
    """
    while (frame := await stream.receive()) is not None:
        if frame.kind == END:  # with a fault, which the streams of the stages tell, too
            return
        if frame.kind != StageFrameKind.CHUNKS:
            raise stream.reject(ProtocolError(f"a frame of kind {frame.kind} arrived on an edge"))
        try:
            await take(EncodedChunks.from_link(frame.body))
        except BrokenChannel as error:
            raise stream.reject(ProtocolError(str(error))) from error
