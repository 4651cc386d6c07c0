"""The check that every stage makes before it gives a request a slot."""

from __future__ import annotations

from collections.abc import Collection

from cantata.contract.data.errors import Overloaded, ProtocolViolation
from cantata.contract.data.request import StageInput


def check_slot(
    request_id: str, payload: StageInput | None, held: Collection[str], slots: int
) -> StageInput:
    """Return the input of a request that may have a slot.

    Raises:
        ProtocolViolation: the id is in use, or there is no input.
        Overloaded: every slot is taken.
    """
    if request_id in held or payload is None:
        raise ProtocolViolation(f"request {request_id!r} is held already, or has no input")
    if len(held) >= slots:
        raise Overloaded(f"all {slots} slots are taken")
    return payload
