"""The device that a training computes on, and how its batches get there."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch

from cantata.contract.data.errors import ConfigError

CPU = torch.device("cpu")

Batch = TypeVar("Batch")


def find_device(name: str) -> torch.device:
    """Return the device of this name: `cpu`, `cuda` (the first GPU) or `cuda:1`.

    Raises:
        ConfigError: torch sees no such device; the message says which there are.
    """
    gpus = range(torch.cuda.device_count())
    wanted = "cuda:0" if name == "cuda" else name
    if wanted in ("cpu", *(f"cuda:{number}" for number in gpus)):
        return torch.device(wanted)
    seen = ["cpu", *(f"cuda:{number} ({torch.cuda.get_device_name(number)})" for number in gpus)]
    reason = "" if torch.version.cuda else ", which is built for CPUs alone"
    raise ConfigError(
        f"device {name!r} is not there; torch {torch.__version__}{reason}, sees {', '.join(seen)}"
    )


def upload(batch: Batch, device: torch.device) -> Batch:
    """Return a batch on a device.

    The host does not wait: copies are queued, to CUDA from pinned memory. On the CPU, the batch is
    returned as it is.

    Args:
        batch: a dataclass whose fields are tensors on the CPU, such dataclasses, or what stays with
            the host, such as numbers.
        device: where it will be.
    """
    return batch if device.type == "cpu" else _copy(batch, device)


def _copy(part: Any, device: torch.device) -> Any:
    if isinstance(part, torch.Tensor):
        held = part.pin_memory() if device.type == "cuda" else part
        return held.to(device, non_blocking=True)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    copies = {field.name: _copy(getattr(part, field.name), device) for field in fields(part)}
    return replace(part, **copies)
