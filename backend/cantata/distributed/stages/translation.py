"""A stage's messages and reports as frames, and back."""

from __future__ import annotations

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
from cantata.contract.process.steps import ForwardCost, StepCost
from cantata.distributed.faults import to_error, to_fault
from cantata.distributed.link.errors import ProtocolError
from cantata.distributed.link.frames import Frame
from cantata.distributed.serialization import decode, encode
from cantata.distributed.stages.messages import (
    ExtendOrder,
    RegisterOrder,
    StageFailure,
    StageFrameKind,
    to_age,
    to_time,
)
from cantata.distributed.stages.values import flatten, unflatten
from cantata.ipc.encoded import EncodedChunks
from cantata.ipc.wire import BrokenChannel, Buffer

EncodedMessage = tuple[StageFrameKind, tuple[Buffer, ...]]
"""A frame to be sent: its kind, and the parts of its body."""
Message = Register | Extend | Abort | Credit
"""For a stage, about requests."""
StageEvent = Output | Failed | Aborted | StepMeasured
"""Of a stage, about requests and its steps."""


def encode_command(message: Message) -> EncodedMessage:
    """A message for a stage, as it is sent.

    Raises:
        TypeError: a stage's input holds what cannot be sent.
    """
    match message:
        case Register(request_id, payload, batch, playout_deadline_s, stretch):
            tree, arrays = flatten(payload)
            due_s = to_age(playout_deadline_s)
            order = RegisterOrder(request_id, tree, arrays, batch, due_s, stretch)
            return StageFrameKind.REGISTER, encode(order)
        case Extend(request_id, payload, final):
            tree, arrays = flatten(payload)
            return StageFrameKind.EXTEND, encode(ExtendOrder(request_id, tree, arrays, final))
        case Abort():
            return StageFrameKind.ABORT, encode(message)
        case Credit():
            return StageFrameKind.CREDIT, encode(message)


def to_message(frame: Frame, packages: Collection[str]) -> Message | None:
    """The message that has arrived; None if it is of another kind.

    Args:
        frame: of a stage's stream.
        packages: as `values.unflatten`'s.

    Raises:
        ProtocolError: it is none.
    """
    match frame.kind:
        case StageFrameKind.REGISTER:
            order = decode(frame.body, RegisterOrder)
            payload = unflatten(order.payload, order.arrays, packages)
            due_s = to_time(order.runs_dry_in_s)
            return Register(order.request_id, payload, order.batch, due_s, order.stretch)
        case StageFrameKind.EXTEND:
            more = decode(frame.body, ExtendOrder)
            payload = unflatten(more.payload, more.arrays, packages)
            return Extend(more.request_id, payload, more.final)
        case StageFrameKind.ABORT:
            return decode(frame.body, Abort)
        case StageFrameKind.CREDIT:
            return decode(frame.body, Credit)
    return None


def encode_event(event: StageEvent) -> EncodedMessage:
    """A stage's event, as it is sent."""
    match event:
        case Output(chunks):
            return StageFrameKind.CHUNKS, EncodedChunks.of(chunks).parts_for_elsewhere
        case Failed(request_id, error):
            return StageFrameKind.FAILED, encode(StageFailure(request_id, to_fault(error)))
        case Aborted():
            return StageFrameKind.ABORTED, encode(event)
        case StepMeasured(StepCost() as cost):
            return StageFrameKind.MEASURED_STEPS, encode(cost)
        case StepMeasured(cost):
            return StageFrameKind.MEASURED_FORWARDS, encode(cost)


def decode_event(frame: Frame) -> StageEvent | None:
    """The event that has arrived; None if the frame is of another kind.

    Raises:
        ProtocolError: it is not an event of a stage.
    """
    match frame.kind:
        case StageFrameKind.CHUNKS:
            try:
                return Output(tuple(EncodedChunks.from_elsewhere(frame.body).chunks()))
            except BrokenChannel as error:
                raise ProtocolError(str(error)) from error
        case StageFrameKind.FAILED:
            failed = decode(frame.body, StageFailure)
            return Failed(failed.request_id, to_error(failed.fault))
        case StageFrameKind.ABORTED:
            return decode(frame.body, Aborted)
        case StageFrameKind.MEASURED_STEPS:
            return StepMeasured(decode(frame.body, StepCost))
        case StageFrameKind.MEASURED_FORWARDS:
            return StepMeasured(decode(frame.body, ForwardCost))
    return None
