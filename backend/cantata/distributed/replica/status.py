"""What a replica's supervisor wants to know about it."""

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
    """Those of them whose start the model's admission still delays."""


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """A replica now."""

    ready: bool
    """Every model accepts orders."""
    draining: bool
    """It finishes what it speaks and takes nothing new."""
    edges: int
    """Number of edges that have a link to it."""
    models: Mapping[str, ModelStatus]
    """By name."""
