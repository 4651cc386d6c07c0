"""The training loop of every stage: a budget in minutes, averaged weights, checkpoints, a log."""

from __future__ import annotations

import json
import logging
import math
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor, nn

logger = logging.getLogger(__name__)

CHECKPOINT_EVERY_S = 150.0
LOG_EVERY = 50
WARMUP_STEPS = 50
FINAL_RATE = 0.02
"""Share of the peak learning rate at the end of training."""
LEVEL_SHARE = 0.4
"""Share of the budget at the full learning rate."""
CLIP_NORM = 1.0
AVERAGING = 0.995
"""Share of the old average that a step keeps, once there were enough steps."""


def rate_scale(progress: float, step: int) -> float:
    """Returns the share of the peak learning rate at `progress` in 0..1 of the budget."""
    warm = min(1.0, (step + 1) / WARMUP_STEPS)
    fall = min(1.0, max(0.0, progress - LEVEL_SHARE) / (1 - LEVEL_SHARE))
    return warm * (FINAL_RATE + (1 - FINAL_RATE) * (0.5 + 0.5 * math.cos(math.pi * fall)))


def averaged_weights(path: Path, network: nn.Module) -> dict[str, Tensor]:
    """Gives a training's averaged weights, or the network's own where none was begun."""
    if not path.exists():
        return network.state_dict()
    average: dict[str, Tensor] = torch.load(path, weights_only=True)["average"]
    return average


@dataclass(slots=True)
class Progress:
    """How far a training has come; part of its checkpoint."""

    step: int = 0
    seconds: float = 0.0


class TrainingLoop:
    """Takes steps until the time budget is spent, and resumes from a checkpoint.

    The schedule follows time, not steps: on a shared machine the number of steps that fit is
    unknown.
    """

    def __init__(
        self,
        path: Path,
        network: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        minutes: float,
    ) -> None:
        self.path = path
        self.network = network
        self.optimizers = list(optimizers)
        self.peaks = [group["lr"] for opt in self.optimizers for group in opt.param_groups]
        self.budget_s = minutes * 60
        self.progress = Progress()
        self.stopping = False
        self.average = {name: value.clone() for name, value in network.state_dict().items()}
        self._resume()

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""
        return self.progress.seconds >= self.budget_s

    def run(
        self,
        loss: Callable[[int], tuple[Tensor, dict[str, float]]],
        at_checkpoint: Callable[[], dict[str, float]],
    ) -> None:
        """Trains until the budget is spent.

        Args:
            loss: takes the step number; gives the loss [] and figures for the log.
            at_checkpoint: validates; gives figures for the log.
        """
        saved = time.monotonic()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        while not self.finished:
            began = time.monotonic()
            figures = self._step(loss)
            self.progress.seconds += time.monotonic() - began
            if self.progress.step % LOG_EVERY == 0:
                self._log(figures)
            if time.monotonic() - saved > CHECKPOINT_EVERY_S:
                self.save()
                self._log(at_checkpoint())
                saved = time.monotonic()
            if self.stopping:
                self.save()
                raise SystemExit(128 + signal.SIGTERM)
        self.save()

    def save(self) -> None:
        """Writes the checkpoint; if this is interrupted, the old one survives."""
        state = {
            "network": self.network.state_dict(),
            "average": self.average,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "progress": asdict(self.progress),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.path)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Asks for an end after the step under way, with nothing lost."""
        self.stopping = True

    def _resume(self) -> None:
        if not self.path.exists():
            return
        state = torch.load(self.path, weights_only=True)
        self.network.load_state_dict(state["network"])
        self.average = state["average"]
        for optimizer, stored in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(stored)
        self.progress = Progress(**state["progress"])
        logger.info("%s resumes at step %d", self.path.stem, self.progress.step)

    def _step(self, loss: Callable[[int], tuple[Tensor, dict[str, float]]]) -> dict[str, float]:
        scale = rate_scale(self.progress.seconds / self.budget_s, self.progress.step)
        groups = [group for opt in self.optimizers for group in opt.param_groups]
        for group, peak in zip(groups, self.peaks, strict=True):
            group["lr"] = peak * scale
        value, figures = loss(self.progress.step)
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), CLIP_NORM)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self._average()
        return figures

    @torch.no_grad()
    def _average(self) -> None:
        """Averages over all steps at first, so that early weights are soon forgotten."""
        keep = min(AVERAGING, self.progress.step / (self.progress.step + 10))
        for name, value in self.network.state_dict().items():
            self.average[name].lerp_(value, 1 - keep)

    def _log(self, figures: dict[str, float]) -> None:
        line = {
            "step": self.progress.step,
            "seconds": round(self.progress.seconds, 1),
            **{key: round(value, 5) for key, value in figures.items()},
        }
        with self.path.with_suffix(".jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        logger.info("%s %s", self.path.stem, line)
