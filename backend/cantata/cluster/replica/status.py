"""What whoever supervises a replica wants to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One model's places."""

    places: int
    """Orders that may run."""
    free: int
    """Orders that would be admitted now."""
    in_use: int
    """Orders that are being served."""
    waiting: int
    """Of these, those whose start the model's admission still delays."""


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """A replica now."""

    ready: bool
    """Every model accepts orders."""
    draining: bool
    """It ends what it speaks and takes nothing new."""
    edges: int
    """That have a link to it."""
    models: Mapping[str, ModelStatus]
    """By name."""
