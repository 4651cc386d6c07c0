"""Trains the prosody predictor: durations, pitch and energy of the teacher.

The teacher has no chance in it: a text in a voice has one melody, so that an absolute error has
nothing to average away.

Letters: B rows, T phones, F frames of 12.5 ms, G frames of 25 ms.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from cantata_layers.training.loop import log_figures, save_checkpoint
from cantata_layers.training.mixed_precision import autocast_bfloat16
from cantata_models.quartet.network import (
    ENERGY_SCALE,
    PITCH_SCALE,
    ProsodyPredictor,
    QuartetNetwork,
)
from cantata_models.quartet.training.bank import SpeechBank, SpokenBy, stack_phones
from cantata_models.quartet.training.run_state import (
    TimeBudget,
    fit_features,
    load_checkpoint,
    update_mean,
)
from cantata_models.quartet.training.shards import AnnotatedSpeech

CLIP_NORM = 1.0
SPEAKER_RATE = 3.0
"""The share of the rate for what tells speakers apart, which begins with nothing."""
LEAST_VOICED_HZ = 40.0
ENDING_FRAMES = 33
"""0.4 s."""
LEAST_SPREAD = 0.01
"""Octaves; a melody that moves less is none."""


@dataclass(frozen=True, slots=True)
class ProsodyPlan:
    """How the predictor is trained."""

    rows: int = 12
    rate: float = 3e-4
    warm_steps: int = 50
    movement_weight: float = 1.0
    """The weight of errors in how the pitch moves from frame to frame."""
    ending_weight: float = 4.0
    """Of errors of the pitch where questions end, of those elsewhere."""
    log_every: int = 25
    judge_every: int = 200
    refresh_every: int = 100


@dataclass(frozen=True, slots=True)
class Contours:
    """Pitch and energy of utterances, teacher's or predicted."""

    pitch: torch.Tensor
    """[B, F] Hz."""
    energy: torch.Tensor
    """[B, F]."""


@dataclass(slots=True)
class ProsodyTrainer:
    """One training; it goes on from the checkpoint in its folder.

    Raises:
        FileNotFoundError: the bank has no speech.
    """

    path: Path
    """The path of the checkpoint."""
    bank: SpeechBank
    network: QuartetNetwork
    """Its prosody predictor is trained, and holds the running mean after `run`."""
    stock: int
    """The number of voices that the network knows."""
    held_out: Sequence[SpokenBy]
    """Speech that is never trained on."""
    plan: ProsodyPlan = field(default_factory=ProsodyPlan)
    step: int = field(init=False, default=0)
    cpu_seconds: float = field(init=False, default=0.0)
    trained: ProsodyPredictor = field(init=False)
    _optimizer: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        self.bank.refresh()
        self.trained = ProsodyPredictor(self.stock)
        saved = load_checkpoint(self.path)
        if saved is None:
            fit_features(self.network.prosody.speakers, self.bank.features)
            self.trained.load_state_dict(self.network.prosody.state_dict())
        else:
            self.trained.load_state_dict(saved["trained"])
            self.network.prosody.load_state_dict(saved["mean"])
            self.step, self.cpu_seconds = saved["step"], saved["cpu_seconds"]
        kinds = dict[bool, list[nn.Parameter]]({False: [], True: []})
        for name, parameter in self.trained.named_parameters():
            is_speaker = "speaker" in name or "bias.weight" in name
            kinds[is_speaker].append(parameter)
        groups = [{"params": kinds[one], "share": SPEAKER_RATE if one else 1.0} for one in kinds]
        self._optimizer = torch.optim.AdamW(groups, lr=self.plan.rate, weight_decay=0.01)

    def save(self) -> None:
        """Writes the checkpoint. The optimiser begins anew after it."""
        state = {
            "trained": self.trained.state_dict(),
            "mean": self.network.prosody.state_dict(),
            "step": self.step,
            "cpu_seconds": self.cpu_seconds,
        }
        save_checkpoint(self.path, state)

    def run(self, budget: TimeBudget) -> None:
        """Train until the time is spent, then save."""
        taken = 0
        while budget.left_s > 0:
            warm = min(1.0, (taken + 1) / self.plan.warm_steps)
            figures = self.take_step(warm * budget.find_scale())
            taken += 1
            if self.step % self.plan.refresh_every == 0:
                self.bank.refresh()
            if self.step % self.plan.log_every == 0:
                self._log(figures)
            if self.step % self.plan.judge_every == 0:
                self._log(self.judge())
                self.save()
        self.save()
        self._log(self.judge())

    def take_step(self, scale: float = 1.0) -> dict[str, float]:
        """One step on utterances that depend on the step alone; returns figures to log.

        Args:
            scale: of the rate.
        """
        began = time.process_time()
        for group in self._optimizer.param_groups:
            group["lr"] = self.plan.rate * group["share"] * scale
        drawn = self.bank.draw_whole(np.random.default_rng(self.step), self.plan.rows)
        with autocast_bfloat16():
            figures = measure_prosody(self.trained, drawn, self.plan.ending_weight)
        loss = figures["duration"] + figures["pitch"] + figures["energy"]
        loss = loss + self.plan.movement_weight * figures["movement"]
        self._optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.trained.parameters(), CLIP_NORM)
        self._optimizer.step()
        self.step += 1
        update_mean(self.network.prosody, self.trained, self.step)
        self.cpu_seconds += time.process_time() - began
        return {name: value.item() for name, value in figures.items()}

    @torch.no_grad()
    def judge(self) -> dict[str, Any]:
        """Errors on held-out speech, of the mean weights, and how far the pitch spreads."""
        figures = measure_prosody(self.network.prosody, self.held_out)
        judged = {f"held_out_{name}": value.item() for name, value in figures.items()}
        return judged | measure_spread(self.network.prosody, self.held_out)

    def _log(self, figures: dict[str, Any]) -> None:
        place = {"step": self.step, "cpu_seconds": round(self.cpu_seconds)}
        log_figures(self.path.with_suffix(".jsonl"), place | figures)


def predict_contours(
    predictor: ProsodyPredictor, drawn: Sequence[SpokenBy]
) -> tuple[torch.Tensor, Contours]:
    """[B, T] log durations, and the contours on the teacher's durations."""
    batch = stack_phones(drawn)
    speaker = predictor.speakers(batch.speakers, batch.features)
    encoded, logs = predictor.predict_durations(batch.phones, speaker, batch.mask)
    rows = [
        row.repeat_interleave(counts, 0)
        for row, counts in zip(encoded, batch.durations, strict=True)
    ]
    pitch, energy = predictor.predict_contour(pad_sequence(rows, batch_first=True), speaker)
    return logs, Contours(pitch, energy)


def measure_prosody(
    predictor: ProsodyPredictor, drawn: Sequence[SpokenBy], ending_weight: float = 1.0
) -> dict[str, torch.Tensor]:
    """Mean absolute errors [] in the network's own units.

    Args:
        predictor: what is measured.
        drawn: what it should predict.
        ending_weight: of the pitch in the last `ENDING_FRAMES` that questions are voiced in.
    """
    logs, contours = predict_contours(predictor, drawn)
    batch, spoken = stack_phones(drawn), [one.spoken for one in drawn]
    speeds = torch.tensor([one.speed for one in spoken])[:, None]
    wanted = torch.log(batch.durations * speeds + 1)
    duration = (logs - wanted).abs()[batch.durations > 0].mean()
    known = pad_sequence(
        [torch.ones(len(one.pitch), dtype=torch.bool) for one in spoken], batch_first=True
    )
    pitch, energy = (
        pad_sequence([torch.from_numpy(values) for values in rows], batch_first=True)
        for rows in ([one.pitch for one in spoken], [one.energy for one in spoken])
    )
    error = (contours.pitch - pitch) / PITCH_SCALE
    weights = pad_sequence([_weigh(one, ending_weight) for one in spoken], batch_first=True)
    total, moves = known.sum(), known[:, 1:].sum()
    return {
        "duration": duration,
        "pitch": (error.abs() * weights).sum() / total,
        "movement": (torch.diff(error).abs() * weights[:, 1:]).sum() / moves,
        "energy": ((contours.energy - energy) / ENERGY_SCALE).abs()[known].mean(),
    }


def _weigh(spoken: AnnotatedSpeech, ending_weight: float) -> torch.Tensor:
    """[F] weights of the pitch."""
    weights = torch.ones(len(spoken.pitch))
    voiced = np.flatnonzero(spoken.pitch > LEAST_VOICED_HZ)
    if spoken.text.endswith("?") and len(voiced):
        last = int(voiced[-1]) + 1
        weights[max(last - ENDING_FRAMES, 0) : last] = ending_weight
    return weights


def measure_spread(predictor: ProsodyPredictor, drawn: Sequence[SpokenBy]) -> dict[str, float]:
    """The standard deviation of the pitch within utterances, of the teacher's; by voice."""
    _, contours = predict_contours(predictor, drawn)
    shares = dict[str, list[float]]()
    for one, pitch in zip([one.spoken for one in drawn], contours.pitch, strict=True):
        ours = pitch[: len(one.pitch)].numpy()
        both = (ours > LEAST_VOICED_HZ) & (one.pitch > LEAST_VOICED_HZ)
        spread = max(float(np.log2(one.pitch[both]).std()), LEAST_SPREAD)
        share = np.log2(ours[both]).std() / spread
        shares.setdefault(one.voice, []).append(float(share))
    return {f"spread_{voice}": float(np.mean(found)) for voice, found in sorted(shares.items())}
