"""Trains the spectrum predictor on the teacher's own durations, pitch and energy.

Letters: B rows, F frames of 12.5 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from cantata_layers.harmonic_vocoder import HOP
from cantata_layers.training.device import CPU, upload
from cantata_layers.training.loop import log_figures, save_checkpoint
from cantata_layers.training.mixed_precision import autocast_bfloat16
from cantata_models.quartet.network import QuartetNetwork, SpectrumPredictor
from cantata_models.quartet.training.bank import CropBatch, SpeechBank
from cantata_models.quartet.training.losses import (
    Discriminator,
    SpectrumDistance,
    measure_deceit,
    measure_features,
    measure_hinge,
)
from cantata_models.quartet.training.run_state import (
    TimeBudget,
    copy_weights,
    fit_features,
    load_checkpoint,
    place_mean,
    read_figures,
    update_mean,
    write_back,
)
from cantata_models.quartet.training.vocoder import synthesize_batch

EDGE_FRAMES = 8
"""At both ends of a crop, what the network would see in the whole sentence is missing."""
CLIP_NORM, DISCRIMINATOR_CLIP_NORM = 1.0, 5.0
SPEAKER_RATE = 3.0
"""The share of the rate for what tells speakers apart, which begins with nothing."""


@dataclass(frozen=True, slots=True)
class SpectrumPlan:
    """How the predictor is trained."""

    rows: int = 8
    frames: int = 100
    """Frames of a crop."""
    rate: float = 2e-4
    discriminator_rate: float = 4e-4
    warm_steps: int = 50
    adversary_after: int = 1200
    """Steps by distances of spectra alone; a discriminator finds fine faults only after them."""
    adversary_warm_steps: int = 100
    """Steps in which the discriminator learns while its judgement does not count."""
    deceit_weight: float = 0.1
    feature_weight: float = 2.0
    log_every: int = 25
    judge_every: int = 200
    refresh_every: int = 100


@dataclass(slots=True)
class SpectrumTrainer:
    """One training; it goes on from the checkpoint in its folder.

    Raises:
        FileNotFoundError: the bank has no speech.
    """

    path: Path
    """The path of the checkpoint."""
    bank: SpeechBank
    network: QuartetNetwork
    """On the CPU. Its spectrum predictor is trained, and holds the running mean after `run`."""
    stock: int
    """The number of voices that the network knows."""
    plan: SpectrumPlan = field(default_factory=SpectrumPlan)
    device: torch.device = CPU
    """Where the networks learn. Judges listen on the CPU."""
    step: int = field(init=False, default=0)
    cpu_seconds: float = field(init=False, default=0.0)
    trained: SpectrumPredictor = field(init=False)
    discriminator: Discriminator = field(init=False)
    _mean: SpectrumPredictor = field(init=False)
    _distance: SpectrumDistance = field(init=False)
    _optimizer: torch.optim.AdamW = field(init=False)
    _adversary: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        self.bank.refresh()
        self.trained = SpectrumPredictor(self.stock)
        self.discriminator = Discriminator(self.bank.voices)
        saved = load_checkpoint(self.path)
        if saved is None:
            fit_features(self.network.spectrum.speakers, self.bank.features)
            self.trained.load_state_dict(self.network.spectrum.state_dict())
        else:
            self.trained.load_state_dict(saved["trained"])
            self.network.spectrum.load_state_dict(saved["mean"])
            self.discriminator.load_state_dict(saved["discriminator"])
            self.step, self.cpu_seconds = saved["step"], saved["cpu_seconds"]
        self._mean = place_mean(self.network.spectrum, self.device)
        self._distance = SpectrumDistance().to(self.device)
        for part in (self.trained, self.discriminator):
            part.to(self.device)
        self._optimizer = _make_optimizer(self.trained, self.plan.rate)
        self._adversary = torch.optim.AdamW(
            self.discriminator.parameters(),
            lr=self.plan.discriminator_rate,
            betas=(0.8, 0.99),
            weight_decay=0.0,
        )

    def save(self) -> None:
        """Write the checkpoint, which any device continues. The optimizers begin anew after it."""
        write_back(self._mean, self.network.spectrum)
        state = {
            "trained": copy_weights(self.trained),
            "mean": self.network.spectrum.state_dict(),
            "discriminator": copy_weights(self.discriminator),
            "step": self.step,
            "cpu_seconds": self.cpu_seconds,
        }
        save_checkpoint(self.path, state)

    def run(self, budget: TimeBudget, judge: Callable[[QuartetNetwork], dict[str, Any]]) -> None:
        """Trains until the time is spent, and saves.

        Args:
            budget: of time.
            judge: listens to the network with the mean weights, and returns figures to log.
        """
        taken = 0
        while budget.left_s > 0:
            warm = min(1.0, (taken + 1) / self.plan.warm_steps)
            figures = self.take_step(warm * budget.find_scale())
            taken += 1
            if self.step % self.plan.refresh_every == 0:
                self.bank.refresh()
            if self.step % self.plan.log_every == 0:
                self._log(read_figures(figures))
            if self.step % self.plan.judge_every == 0:
                self.save()
                self._log(judge(self.network))
        self.save()
        self._log(judge(self.network))

    def take_step(self, scale: float = 1.0) -> dict[str, torch.Tensor]:
        """Take one step on crops that depend on the step alone.

        Args:
            scale: of the rate.

        Returns:
            Figures to log, [] each, on the device, so that the host need not wait for it.
        """
        began, plan = time.process_time(), self.plan
        for group in self._optimizer.param_groups:
            group["lr"] = plan.rate * group["share"] * scale
        crops = upload(self.bank.draw(np.random.default_rng(self.step), plan.rows), self.device)
        made, real = self._speak(crops)
        distance = self._distance(made, real)
        loss, figures = distance, {"distance": distance.detach()}
        if self.step >= plan.adversary_after:
            loss, more = self._add_adversary(distance, made, real, crops.whole.voices)
            figures |= more
        self._optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.trained.parameters(), CLIP_NORM)
        self._optimizer.step()
        self.step += 1
        update_mean(self._mean, self.trained, self.step)
        self.cpu_seconds += time.process_time() - began
        return figures

    def _speak(self, crops: CropBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """The crops as the network says them and as the teacher does, without their edges."""
        whole, places = crops.whole, crops.places[..., None]
        with autocast_bfloat16(self.device.type):
            speaker = self.trained.speakers(whole.speakers, whole.features)
            encoded = self.trained.encode(whole.phones, speaker, whole.mask)
            frames = encoded.gather(1, places.expand(-1, -1, encoded.shape[-1]))
            parts = self.trained.predict(frames, crops.pitch, crops.energy, speaker)
        made = synthesize_batch([part.float() for part in parts], crops.pulses)
        inner = slice(EDGE_FRAMES * HOP, -EDGE_FRAMES * HOP)
        return made[:, inner], crops.samples[:, inner]

    def _add_adversary(
        self, distance: torch.Tensor, made: torch.Tensor, real: torch.Tensor, voices: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """A step of the discriminator; the loss of the network with its part, and figures."""
        plan, discriminator = self.plan, self.discriminator
        with autocast_bfloat16(self.device.type):
            theirs = discriminator(real, voices)
            hinge = measure_hinge(theirs, discriminator(made.detach(), voices))
        self._adversary.zero_grad(set_to_none=True)
        torch.autograd.backward(hinge)
        nn.utils.clip_grad_norm_(discriminator.parameters(), DISCRIMINATOR_CLIP_NORM)
        self._adversary.step()
        figures = {"hinge": hinge.detach()}
        if self.step < plan.adversary_after + plan.adversary_warm_steps:
            return distance, figures
        discriminator.requires_grad_(False)
        with autocast_bfloat16(self.device.type):
            ours = discriminator(made, voices)
        discriminator.requires_grad_(True)
        deceit, features = measure_deceit(ours), measure_features(theirs, ours)
        loss = distance + plan.deceit_weight * deceit + plan.feature_weight * features
        return loss, figures | {"deceit": deceit.detach(), "features": features.detach()}

    def _log(self, figures: dict[str, Any]) -> None:
        place = {"step": self.step, "cpu_seconds": round(self.cpu_seconds)}
        minutes = {"minutes": self.bank.minutes}
        log_figures(self.path.with_suffix(".jsonl"), place | figures | minutes)


def _make_optimizer(predictor: nn.Module, rate: float) -> torch.optim.AdamW:
    kinds = dict[bool, list[nn.Parameter]]({False: [], True: []})
    for name, parameter in predictor.named_parameters():
        kinds["speaker" in name].append(parameter)
    groups = [
        {"params": kinds[speaks], "share": SPEAKER_RATE if speaks else 1.0} for speaks in kinds
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.8, 0.98), weight_decay=0.0)
