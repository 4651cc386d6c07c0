"""A stage's messages and reports as frames, and back."""

from __future__ import annotations

from collections.abc import Collection

from cantata.cluster.faults import error_of, fault_of
from cantata.cluster.link.errors import ProtocolError
from cantata.cluster.link.frames import Frame
from cantata.cluster.serialization import decode, encode
from cantata.cluster.stages.messages import (
    ExtendOrder,
    FailedNews,
    Kind,
    RegisterOrder,
    age_of,
    time_of,
)
from cantata.cluster.stages.values import flatten, unflatten
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    Credit,
    Extend,
    Failed,
    Measured,
    Output,
    Register,
)
from cantata.contract.process.steps import ForwardCost, StepCost
from cantata.ipc.encoded import EncodedChunks
from cantata.ipc.wire import BrokenChannel, Buffer

Said = tuple[Kind, tuple[Buffer, ...]]
"""A frame to be sent: its kind, and the parts of its body."""
Message = Register | Extend | Abort | Credit
"""For a stage, about requests."""
News = Output | Failed | Aborted | Measured
"""Of a stage, about requests and its steps."""


def encode_command(message: Message) -> Said:
    """A message for a stage, as it is sent.

    Raises:
        TypeError: a stage's input holds what cannot be sent.
    """
    match message:
        case Register(request_id, payload, batch, playout_deadline_s, stretch):
            tree, arrays = flatten(payload)
            due_s = age_of(playout_deadline_s)
            order = RegisterOrder(request_id, tree, arrays, batch, due_s, stretch)
            return Kind.REGISTER, encode(order)
        case Extend(request_id, payload, final):
            tree, arrays = flatten(payload)
            return Kind.EXTEND, encode(ExtendOrder(request_id, tree, arrays, final))
        case Abort():
            return Kind.ABORT, encode(message)
        case Credit():
            return Kind.CREDIT, encode(message)


def message_of(frame: Frame, packages: Collection[str]) -> Message | None:
    """The message that has arrived; None if it is of another kind.

    Args:
        frame: of a stage's stream.
        packages: as `values.unflatten`'s.

    Raises:
        Garbage: it is none.
    """
    match frame.kind:
        case Kind.REGISTER:
            order = decode(frame.body, RegisterOrder)
            payload = unflatten(order.payload, order.arrays, packages)
            due_s = time_of(order.runs_dry_in_s)
            return Register(order.request_id, payload, order.batch, due_s, order.stretch)
        case Kind.EXTEND:
            more = decode(frame.body, ExtendOrder)
            payload = unflatten(more.payload, more.arrays, packages)
            return Extend(more.request_id, payload, more.final)
        case Kind.ABORT:
            return decode(frame.body, Abort)
        case Kind.CREDIT:
            return decode(frame.body, Credit)
    return None


def encode_event(news: News) -> Said:
    """News of a stage, as it is sent."""
    match news:
        case Output(chunks):
            return Kind.CHUNKS, EncodedChunks.of(chunks).parts_for_elsewhere
        case Failed(request_id, error):
            return Kind.FAILED, encode(FailedNews(request_id, fault_of(error)))
        case Aborted():
            return Kind.ABORTED, encode(news)
        case Measured(StepCost() as cost):
            return Kind.MEASURED_STEPS, encode(cost)
        case Measured(cost):
            return Kind.MEASURED_FORWARDS, encode(cost)


def decode_event(frame: Frame) -> News | None:
    """The news that has arrived; None if it is of another kind.

    Raises:
        Garbage: it is not news of a stage.
    """
    match frame.kind:
        case Kind.CHUNKS:
            try:
                return Output(tuple(EncodedChunks.from_elsewhere(frame.body).chunks()))
            except BrokenChannel as error:
                raise ProtocolError(str(error)) from error
        case Kind.FAILED:
            failed = decode(frame.body, FailedNews)
            return Failed(failed.request_id, error_of(failed.fault))
        case Kind.ABORTED:
            return decode(frame.body, Aborted)
        case Kind.MEASURED_STEPS:
            return Measured(decode(frame.body, StepCost))
        case Kind.MEASURED_FORWARDS:
            return Measured(decode(frame.body, ForwardCost))
    return None
