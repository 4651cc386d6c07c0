"""The training loop of every stage: a budget in minutes, averaged weights, checkpoints, a log."""

from __future__ import annotations

import json
import logging
import math
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from cantata_layers.training.progress import new_bar

logger = logging.getLogger(__name__)

CHECKPOINT_EVERY_S = 150.0
LOG_EVERY = 50
CLIP_NORM = 1.0
AVERAGING = 0.995
"""Share of the old average that a step keeps, once there were enough steps."""


@dataclass(frozen=True, slots=True)
class RateSchedule:
    """Shares of the peak learning rates: it rises, stays, and falls as half a cosine."""

    warm_steps: int = 0
    """In which it rises, as the next."""
    warm_share: float = 0.0
    """Of the budget."""
    level_share: float = 0.0
    """Of the budget, at the peak; the rise is a part of it."""
    final: float = 0.02

    def find_scale(self, progress: float, step: int) -> float:
        """Return the share at `progress` in 0..1 of the budget."""
        warm = 1.0
        if self.warm_steps:
            warm = min(warm, (step + 1) / self.warm_steps)
        if self.warm_share:
            warm = min(warm, (progress + 1e-4) / self.warm_share)
        fall = min(1.0, max(0.0, progress - self.level_share) / (1 - self.level_share))
        return warm * (self.final + (1 - self.final) * (0.5 + 0.5 * math.cos(math.pi * fall)))


HALF_COSINE = RateSchedule(warm_share=0.02)
LEVEL_FIRST = RateSchedule(warm_steps=50, level_share=0.4)


def make_adamw(
    parameters: Iterable[nn.Parameter], rate: float, weight_decay: float = 0.01
) -> torch.optim.AdamW:
    """Return an optimizer that forgets old squares of gradients sooner than is usual."""
    return torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.98), weight_decay=weight_decay)


class TrainedPart(Protocol):
    """What a checkpoint keeps: a module, or what else has a state."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state."""
        ...

    def load_state_dict(self, state_dict: Any, /) -> Any:
        """Restore a state."""
        ...


@dataclass(slots=True)
class TrainingProgress:
    """How far a training has come; part of its checkpoint."""

    step: int = 0
    seconds: float = 0.0


class TrainingLoop:
    """Takes steps until the time budget is spent, and resumes from a checkpoint.

    The schedule follows time, not steps: on a shared machine the number of steps that fit is
    unknown.

    Args:
        path: of the checkpoint; the log is beside it. If there is one, it is restored.
        parts: what a checkpoint keeps, by name.
        optimizers: their rates are the peaks.
        minutes: the budget.
        schedule: of the rates.
        averaged: a module whose running mean a checkpoint keeps, too.
    """

    def __init__(
        self,
        path: Path,
        parts: Mapping[str, TrainedPart],
        optimizers: Sequence[torch.optim.Optimizer],
        minutes: float,
        schedule: RateSchedule,
        averaged: nn.Module | None = None,
    ) -> None:
        self.path = path
        self.parts = parts
        self.optimizers = list(optimizers)
        self.budget_s = minutes * 60
        self.progress = TrainingProgress()
        self._schedule = schedule
        self._averaged = averaged
        self._average = {} if averaged is None else _copy_state(averaged)
        self._peaks = [group["lr"] for opt in self.optimizers for group in opt.param_groups]
        self._is_stopping = False
        self._resume()

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""
        return self.progress.seconds >= self.budget_s

    def run(
        self,
        loss: Callable[[int], tuple[Tensor, dict[str, float]]],
        at_checkpoint: Callable[[], dict[str, float]] = dict,
    ) -> None:
        """Train until the budget is spent. A signal to end acts after the step under way.

        Args:
            loss: takes the step number; returns the loss [] and figures for the log.
            at_checkpoint: validates; returns figures for the log.
        """
        saved = time.monotonic()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        with new_bar() as bar:
            task = bar.add_task(f"{self.path.stem} (seconds)", total=self.budget_s)
            while not self.finished:
                began = time.monotonic()
                figures = self._step(loss)
                self.progress.seconds += time.monotonic() - began
                bar.update(task, completed=round(self.progress.seconds))
                if self.progress.step % LOG_EVERY == 0:
                    self._log(figures)
                if time.monotonic() - saved > CHECKPOINT_EVERY_S:
                    self.save()
                    self._log(at_checkpoint())
                    saved = time.monotonic()
                if self._is_stopping:
                    self.save()
                    raise SystemExit(128 + signal.SIGTERM)
        self.save()
        self._log(at_checkpoint())

    def save(self) -> None:
        """Write the checkpoint."""
        state = {
            "model": {name: part.state_dict() for name, part in self.parts.items()},
            "average": self._average,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "progress": asdict(self.progress),
        }
        save_checkpoint(self.path, state)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _resume(self) -> None:
        if not self.path.exists():
            return
        state = torch.load(self.path, weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(state["model"][name])
        self._average = state["average"]
        for optimizer, stored in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(stored)
        self.progress = TrainingProgress(**state["progress"])
        logger.info("%s resumes at step %d", self.path.stem, self.progress.step)

    def _step(self, loss: Callable[[int], tuple[Tensor, dict[str, float]]]) -> dict[str, float]:
        progress = self.progress.seconds / self.budget_s
        scale = self._schedule.find_scale(progress, self.progress.step)
        groups = [group for opt in self.optimizers for group in opt.param_groups]
        for group, peak in zip(groups, self._peaks, strict=True):
            group["lr"] = peak * scale
        value, figures = loss(self.progress.step)
        torch.autograd.backward(value)
        nn.utils.clip_grad_norm_([x for group in groups for x in group["params"]], CLIP_NORM)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self._update_average()
        return figures

    @torch.no_grad()
    def _update_average(self) -> None:
        """Average over all steps at first, so that early weights are soon forgotten."""
        if self._averaged is None:
            return
        keep = min(AVERAGING, self.progress.step / (self.progress.step + 10))
        for name, value in self._averaged.state_dict().items():
            self._average[name].lerp_(value, 1 - keep)

    def _log(self, figures: dict[str, float]) -> None:
        if not figures:
            return
        place = {"step": self.progress.step, "seconds": round(self.progress.seconds, 1)}
        log_figures(self.path.with_suffix(".jsonl"), place | figures)


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write a checkpoint; if this is interrupted, the old one survives."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save(dict(state), part)
    part.replace(path)


def log_figures(path: Path, figures: Mapping[str, Any]) -> None:
    """Append a line of JSON to a curve."""
    line = {k: round(v, 5) if isinstance(v, float) else v for k, v in figures.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as log:
        log.write(json.dumps(line) + "\n")
    logger.info("%s %s", path.stem, line)


def read_average(path: Path, network: nn.Module) -> dict[str, Tensor]:
    """Return a training's averaged weights, or the network's own where none was begun."""
    if not path.exists():
        return network.state_dict()
    average: dict[str, Tensor] = torch.load(path, weights_only=True)["average"]
    return average


def _copy_state(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}
