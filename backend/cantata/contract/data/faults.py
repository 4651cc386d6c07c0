"""Errors of the common tree as plain data, which crosses processes and links."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data import errors
from cantata.contract.data.errors import CantataError, InvalidRequest, Overloaded, RequestFailed

_BY_NAME = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, CantataError)
}


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    """The name of the error's class."""
    message: str
    param: str | None = None
    """The field at fault, of an `InvalidRequest`."""
    retry_after_s: float = 1.0
    """Seconds; only for `Overloaded`."""


def to_fault(error: CantataError) -> Fault:
    """An error to be sent. One that only a part of the program knows becomes its nearest ancestor
    in the common tree."""
    name = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _BY_NAME)
    match error:
        case InvalidRequest():
            return Fault(name, error.message, param=error.param)
        case Overloaded():
            return Fault(name, error.message, retry_after_s=error.retry_after_s)
        case _:
            return Fault(name, error.message)


def to_error(fault: Fault) -> CantataError:
    """The error that was sent; `RequestFailed` if its class is unknown."""
    kind = _BY_NAME.get(fault.name, RequestFailed)
    if issubclass(kind, InvalidRequest):
        return kind(fault.message, fault.param)
    if issubclass(kind, Overloaded):
        return kind(fault.message, fault.retry_after_s)
    return kind(fault.message)
