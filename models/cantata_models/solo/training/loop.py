"""The training loop of every stage: time budget in minutes, cosine schedule, checkpoints, logs."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cantata_models.solo.training.progress import new_bar

logger = logging.getLogger(__name__)

CHECKPOINT_EVERY_S = 120.0
LOG_EVERY = 50
WARMUP_SHARE = 0.02
FINAL_RATE = 0.02
"""Share of the peak learning rate at the end of training."""
CLIP_NORM = 1.0


def rate_scale(progress: float) -> float:
    """Returns the share of the peak learning rate at `progress` in [0, 1] of the budget."""
    warm = min(1.0, (progress + 1e-4) / WARMUP_SHARE)
    cosine = 0.5 + 0.5 * math.cos(math.pi * min(1.0, progress))
    return warm * (FINAL_RATE + (1 - FINAL_RATE) * cosine)


@dataclass(slots=True)
class Progress:
    """How far a training has come; part of its checkpoint."""

    step: int = 0
    seconds: float = 0.0


class TrainingLoop:
    """Runs steps until the time budget is spent, and resumes from a checkpoint.

    The schedule follows time, not steps: on a shared machine the number of steps that fit is
    unknown.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        minutes: float,
        peak_rate: float,
        parameters: list[torch.nn.Parameter],
        weight_decay: float = 0.01,
    ) -> None:
        self.name = name
        self.path = folder / f"{name}.pt"
        self.log_path = folder / f"{name}.jsonl"
        self.budget_s = minutes * 60
        self.peak_rate = peak_rate
        self.parameters = parameters
        self.optimizer = torch.optim.AdamW(
            parameters, lr=peak_rate, betas=(0.9, 0.98), weight_decay=weight_decay
        )
        self.progress = Progress()

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""
        return self.progress.seconds >= self.budget_s

    def resume(self) -> dict[str, Any] | None:
        """Restores the checkpoint and returns its model state, or None if there is none."""
        if not self.path.exists():
            return None
        saved: dict[str, Any] = torch.load(self.path, weights_only=False)
        self.optimizer.load_state_dict(saved["optimizer"])
        self.progress = Progress(**saved["progress"])
        logger.info("%s resumes at step %d", self.name, self.progress.step)
        model: dict[str, Any] = saved["model"]
        return model

    def save(self, model: dict[str, Any]) -> None:
        """Writes the checkpoint. If interrupted, the old checkpoint survives."""
        progress = {"step": self.progress.step, "seconds": self.progress.seconds}
        state = {"model": model, "optimizer": self.optimizer.state_dict(), "progress": progress}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.path)

    def apply(self, loss: torch.Tensor) -> None:
        """Takes one optimizer step on a loss."""
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP_NORM)
        self.optimizer.step()

    def run(
        self,
        step: Callable[[int], tuple[torch.Tensor, dict[str, float]]],
        model_state: Callable[[], dict[str, Any]],
        at_checkpoint: Callable[[], dict[str, float]] | None = None,
    ) -> None:
        """Trains until the budget is spent.

        Args:
            step: takes the step number; returns the loss [] and figures to log.
            model_state: returns the model state for checkpoints.
            at_checkpoint: runs validation and returns figures to log.
        """
        last_saved = time.monotonic()
        bar = new_bar()
        bar.start()
        task = bar.add_task(f"{self.name} (seconds)", total=self.budget_s)
        while not self.finished:
            began = time.monotonic()
            scale = rate_scale(self.progress.seconds / self.budget_s)
            for group in self.optimizer.param_groups:
                group["lr"] = self.peak_rate * scale
            loss, figures = step(self.progress.step)
            self.apply(loss)
            self.progress.step += 1
            self.progress.seconds += time.monotonic() - began
            bar.update(task, completed=round(self.progress.seconds))
            if self.progress.step % LOG_EVERY == 0:
                self._log(figures)
            if time.monotonic() - last_saved > CHECKPOINT_EVERY_S:
                if at_checkpoint is not None:
                    self._log(at_checkpoint())
                self.save(model_state())
                last_saved = time.monotonic()
        bar.stop()
        if at_checkpoint is not None:
            self._log(at_checkpoint())
        self.save(model_state())

    def _log(self, figures: dict[str, float]) -> None:
        line = {
            "step": self.progress.step,
            "seconds": round(self.progress.seconds, 1),
            **{key: round(value, 5) for key, value in figures.items()},
        }
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("a") as log:
            log.write(json.dumps(line) + "\n")
        logger.info("%s %s", self.name, line)
