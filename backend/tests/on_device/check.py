"""A model's pipeline on a device that pretends to be a GPU, beside the same on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Payload, Progress, to_array
from cantata.contract.data.transcripts import TranscriptUpdate
from on_device.pipeline import Waits, build_stages, in_one_process, run
from on_device.requests import build_requests
from pretended_device import device, pretended
from threads import threads

LIKENESS = 0.1
"""Most of a relative difference: pictures are computed in bfloat16 off the CPU, and a phase near
half a turn may come out on its other side."""


def check_on_device(located: LocatedModel, engine: str = "vllm") -> None:
    """Fail unless requests of all kinds run there as on the CPU, and no step or decode waits.

    Args:
        engine: of AR stages.
    """
    with threads(1), in_one_process(located):
        expected, _ = _made(located, torch.device("cpu"), Waits([]), ["b"], engine)
        with pretended() as moves:
            # The first requests may fill tables that the second ones find.
            found, waits = _made(located, device(), Waits(moves), ["a", "b"], engine)
    assert not waits.found, "\n".join(map(str, dict.fromkeys(waits.found)))
    assert found.keys() == expected.keys()
    for source, payloads in expected.items():
        _compare(_joined(payloads), _joined(found[source]), source)


def _made(
    located: LocatedModel, where: torch.device, waits: Waits, rounds: Sequence[str], engine: str
) -> tuple[Mapping[str, list[Payload]], Waits]:
    """What left in the last round, and what waited in it."""
    stages = build_stages(located, where, waits, engine)
    made: Mapping[str, list[Payload]] = {}
    for name in rounds:
        waits.found.clear()
        made = run(located, stages, build_requests(located, name))
    return made, waits


def _joined(payloads: Sequence[Payload]) -> NDArray[Any]:
    if isinstance(payloads[0], Progress | TranscriptUpdate):
        return to_array(payloads[-1])
    return np.concatenate([to_array(payload) for payload in payloads])


def _compare(expected: NDArray[Any], found: NDArray[Any], source: str) -> None:
    assert found.shape == expected.shape, source
    if found.dtype.kind == "i":
        np.testing.assert_array_equal(found, expected, err_msg=source)
        return
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    assert np.isfinite(found).all(), source
    difference, size = np.linalg.norm(found - expected), np.linalg.norm(expected)
    assert difference <= LIKENESS * size, f"{source}: {difference} of {size}"
