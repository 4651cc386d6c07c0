"""Control messages between a server and a stage process as bytes. Local sockets and links between
machines carry the same ones.

A message is its kind (1 byte, then 7 of padding, which keep arrays aligned) and a body of
`ipc.serialization`; chunks are encoded as on edges.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from numpy.typing import NDArray

from cantata.contract.data.faults import Fault, to_error, to_fault
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    CannotStart,
    Credit,
    Drained,
    DrainStage,
    Extend,
    Failed,
    ForwardCost,
    FromStage,
    LoadNow,
    MemoryNeeds,
    Output,
    Ping,
    Pong,
    Ready,
    Register,
    StepCost,
    StepMeasured,
    ToStage,
)
from cantata.ipc.encoded import EncodedChunks, encode_chunks
from cantata.ipc.input_values import flatten, unflatten
from cantata.ipc.serialization import decode, encode
from cantata.ipc.wire import BrokenChannel, Buffer

StageMessage = ToStage | FromStage
_HEADER = struct.Struct("!B7x")


class InvalidStageInput(BrokenChannel):
    """A request's input is not what the stage's model takes. The channel itself is intact."""

    def __init__(self, request_id: str, reason: str) -> None:
        super().__init__(reason)
        self.request_id = request_id


class _MessageKind(IntEnum):
    REGISTER = 0
    EXTEND = 1
    ABORT = 2
    CREDIT = 3
    PING = 4
    DRAIN = 5
    LOAD_NOW = 6
    READY = 16
    CANNOT_START = 17
    STEP_COST = 18
    FORWARD_COST = 19
    OUTPUT = 20
    FAILED = 21
    ABORTED = 22
    PONG = 23
    DRAINED = 24
    MEMORY_NEEDS = 25


_PLAIN: Mapping[_MessageKind, type[StageMessage]] = {
    _MessageKind.ABORT: Abort,
    _MessageKind.CREDIT: Credit,
    _MessageKind.PING: Ping,
    _MessageKind.DRAIN: DrainStage,
    _MessageKind.LOAD_NOW: LoadNow,
    _MessageKind.MEMORY_NEEDS: MemoryNeeds,
    _MessageKind.READY: Ready,
    _MessageKind.CANNOT_START: CannotStart,
    _MessageKind.ABORTED: Aborted,
    _MessageKind.PONG: Pong,
    _MessageKind.DRAINED: Drained,
}
"""Messages whose fields are plain data."""
_KINDS = {kind: number for number, kind in _PLAIN.items()}


@dataclass(frozen=True, slots=True)
class _EncodedRegister:
    """`Register`; its input is a tree of `input_values.flatten`, and the arrays that it numbers."""

    request_id: str
    payload: Any
    arrays: tuple[NDArray[Any], ...]
    batch: bool
    playout_deadline_s: float | None
    stretch: float


@dataclass(frozen=True, slots=True)
class _EncodedExtend:
    """`Extend`, likewise."""

    request_id: str
    payload: Any
    arrays: tuple[NDArray[Any], ...]
    final: bool


@dataclass(frozen=True, slots=True)
class _EncodedFailure:
    """`Failed`"""

    request_id: str
    fault: Fault


def encode_message(message: StageMessage) -> tuple[Buffer, ...]:
    """Return a message as parts of bytes; arrays are not copied and must not change any more.
    Raises TypeError: a stage's input or output holds what cannot be sent."""
    kind, parts = _encode_body(message)
    return _HEADER.pack(kind), *parts


def _encode_body(message: StageMessage) -> tuple[_MessageKind, tuple[Buffer, ...]]:
    match message:
        case Register(request_id, payload, batch, due_s, stretch):
            tree, arrays = flatten(payload)
            register = _EncodedRegister(request_id, tree, arrays, batch, due_s, stretch)
            return _MessageKind.REGISTER, encode(register)
        case Extend(request_id, payload, final):
            tree, arrays = flatten(payload)
            return _MessageKind.EXTEND, encode(_EncodedExtend(request_id, tree, arrays, final))
        case Output(chunks):
            return _MessageKind.OUTPUT, encode_chunks(chunks)
        case Failed(request_id, error):
            return _MessageKind.FAILED, encode(_EncodedFailure(request_id, to_fault(error)))
        case StepMeasured(StepCost() as cost):
            return _MessageKind.STEP_COST, encode(cost)
        case StepMeasured(cost):
            return _MessageKind.FORWARD_COST, encode(cost)
        case _:
            return _KINDS[type(message)], encode(message)


def decode_message(
    message: Buffer, packages: Collection[str] | None = (), behind_s: float = 0.0
) -> StageMessage:
    """Return what `encode_message` encoded; arrays lie in `message`.

    Args:
        message: its bytes.
        packages: as `unflatten`'s; a stage's messages need none.
        behind_s: by how much the sender's clock is behind this machine's.

    Raises:
        BrokenChannel: it is no message.
        InvalidStageInput: it is one with an input that the model does not take.
    """
    if len(message) < _HEADER.size:
        raise BrokenChannel(f"received {len(message)} bytes, which are no message")
    [number] = _HEADER.unpack_from(message)
    body = memoryview(message)[_HEADER.size :]
    match number:
        case _MessageKind.REGISTER:
            register = decode(body, _EncodedRegister)
            due_s = register.playout_deadline_s
            return Register(
                register.request_id,
                _decode_input(register, packages),
                register.batch,
                None if due_s is None else due_s + behind_s,
                register.stretch,
            )
        case _MessageKind.EXTEND:
            extend = decode(body, _EncodedExtend)
            return Extend(extend.request_id, _decode_input(extend, packages), extend.final)
        case _MessageKind.OUTPUT:
            encoded = EncodedChunks.from_local(body)
            placed = replace(encoded, behind_s=encoded.behind_s + behind_s)
            return Output(tuple(placed.chunks()))
        case _MessageKind.FAILED:
            failure = decode(body, _EncodedFailure)
            return Failed(failure.request_id, to_error(failure.fault))
        case _MessageKind.STEP_COST:
            return StepMeasured(decode(body, StepCost))
        case _MessageKind.FORWARD_COST:
            return StepMeasured(decode(body, ForwardCost))
    if number not in _PLAIN:
        raise BrokenChannel(f"received a message of the unknown kind {number}")
    return decode(body, _PLAIN[_MessageKind(number)])


def _decode_input(
    message: _EncodedRegister | _EncodedExtend, packages: Collection[str] | None
) -> Any:
    try:
        return unflatten(message.payload, message.arrays, packages)
    except ValueError as error:
        raise InvalidStageInput(message.request_id, str(error)) from error
