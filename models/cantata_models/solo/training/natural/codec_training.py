"""Trains the codec with the source filter: encoder and decoder together, by spectra alone.

The rate follows the steps, not a budget, so a training can go on for as long as there is time. What
is judged and exported is the running mean of the weights, which stands in for a decay of the rate.

Letters: B rows, T frames of 80 ms.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from cantata_models.solo.networks.filter_decoder import FilterCodecConfig
from cantata_models.solo.networks.source_filter import NOISE_HOPS
from cantata_models.solo.training.losses import SpectralLoss
from cantata_models.solo.training.natural.bank import PitchedSound, SpeechBank
from cantata_models.solo.training.natural.components import start_from_components
from cantata_models.solo.training.natural.filter_codec import (
    CodecProgress,
    FilterCodec,
    import_codec,
)
from cantata_models.solo.training.natural.fits import fit_frames, start_from_fits

logger = logging.getLogger(__name__)

SETTLE_HOPS = 5
"""At the beginning of a crop, segments of before are missing; these hops are not compared."""
CLIP_NORM = 1.0
LAST_RATE = 0.05
ENVELOPE_SHARE = 0.03
"""Of the rate, for the layers that begin fitted: their inputs are many and large, so that steps of
the usual size undo what the fit has found."""
FIT_ROWS = 8
"""To which gains are fitted at a time."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How the codec is trained."""

    rows: int = 8
    lead_frames: int = 4
    """Before each crop: what the decoder remembers in the middle of speech."""
    crop_frames: int = 24
    fit_batches: int = 12
    """Of `FIT_ROWS` crops, to which gains are fitted before the first step."""
    fit_steps: int = 12
    peak_rate: float = 1e-3
    warm_steps: int = 100
    steady_steps: int = 2000
    """After so many, the rate falls with the root of the steps."""
    mean_every: int = 5
    """Steps between two updates of the running mean."""
    mean_decay: float = 0.99
    log_every: int = 25
    save_every_s: float = 180.0
    refresh_every: int = 200
    """Steps between two looks for new speech."""
    judge_every: int = 300
    seed: int = 6

    @property
    def frames(self) -> int:
        """Of a crop with its lead."""
        return self.lead_frames + self.crop_frames


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How long a training may run on, by the clock."""

    seconds: float
    cool_seconds: float = 0.0
    """At the end, in which the rate falls on a line."""
    began: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Less than 0 when it is spent."""
        return self.began + self.seconds - time.monotonic()

    def find_scale(self) -> float:
        """Of the rate: 1, and `LAST_RATE` at the end."""
        if self.left_s >= self.cool_seconds:
            return 1.0
        return LAST_RATE + (1 - LAST_RATE) * max(self.left_s, 0.0) / self.cool_seconds


def choose_rate(plan: TrainingPlan, step: int, begun: int = 0) -> float:
    """The learning rate of a step, of a training whose optimiser began at `begun`."""
    warm = min(1.0, (step - begun + 1) / plan.warm_steps)
    return plan.peak_rate * warm * math.sqrt(min(1.0, plan.steady_steps / (step + 1)))


@dataclass(slots=True)
class FilterCodecTrainer:
    """One training. It goes on from the checkpoint in its folder, or else from exported weights."""

    folder: Path
    bank: SpeechBank
    plan: TrainingPlan = field(default_factory=TrainingPlan)
    config: FilterCodecConfig = field(default_factory=FilterCodecConfig)
    start: Path | None = None
    """Exported weights; ignored if there are none."""
    codec: FilterCodec = field(init=False)
    mean: FilterCodec = field(init=False)
    """The running mean of the codec's weights."""
    progress: CodecProgress = field(init=False, default_factory=CodecProgress)
    _optimizer: torch.optim.AdamW = field(init=False)
    _spectral: SpectralLoss = field(init=False)

    def __post_init__(self) -> None:
        torch.manual_seed(self.plan.seed)
        self.codec, self.mean = FilterCodec(self.config), FilterCodec(self.config)
        self.mean.eval().requires_grad_(False)
        self._spectral = SpectralLoss(self.codec.decoder.sample_rate)
        self._optimizer = self._make_optimizer()
        if self.path.exists():
            self._resume()
        elif self.start is not None and self.start.exists():
            self.progress = import_codec(self.mean, self.start)
            self.progress.begun = self.progress.step
            self.codec.load_state_dict(self.mean.state_dict())
        else:
            self._begin()

    @property
    def path(self) -> Path:
        """The checkpoint."""
        return self.folder / "filter_codec.pt"

    def _begin(self) -> None:
        if not self.bank.seconds:
            self.bank.refresh()
        rng, codec = np.random.default_rng(self.plan.seed), self.codec
        heard = [self.bank.draw(rng, FIT_ROWS) for _ in range(self.plan.fit_batches)]
        samples = torch.cat([sound.samples for sound in heard])
        share = start_from_components(codec.encoder, codec.decoder, samples)
        logger.info("the components keep %.3f of the variance", share)
        fitted = fit_frames(codec, heard, self._spectral, self.plan.fit_steps)
        logger.info("a linear map leaves %.3f of it", start_from_fits(codec, fitted))
        self.mean.load_state_dict(codec.state_dict())

    def _make_optimizer(self) -> torch.optim.AdamW:
        kinds = dict[bool, list[nn.Parameter]]({False: [], True: []})
        for name, parameter in self.codec.named_parameters():
            kinds["envelope" in name].append(parameter)
        groups = [
            {"params": kinds[known], "share": ENVELOPE_SHARE if known else 1.0} for known in kinds
        ]
        return torch.optim.AdamW(groups, lr=self.plan.peak_rate, betas=(0.9, 0.98), fused=True)

    def _resume(self) -> None:
        saved: dict[str, Any] = torch.load(self.path, weights_only=True)
        self.codec.load_state_dict(saved["codec"])
        self.mean.load_state_dict(saved["mean"])
        self._optimizer.load_state_dict(saved["optimizer"])
        self.progress = CodecProgress(**saved["progress"])
        logger.info("resumes at step %d", self.progress.step)

    def save(self) -> None:
        """Writes the checkpoint. If that is interrupted, the old one survives."""
        progress = self.progress
        state = {
            "codec": self.codec.state_dict(),
            "mean": self.mean.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "progress": {name: getattr(progress, name) for name in CodecProgress.__slots__},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.path)

    def run(self, budget: TimeBudget, judge: Callable[[FilterCodec], dict[str, Any]]) -> None:
        """Trains until the time is spent, and saves.

        Args:
            budget: of time.
            judge: listens to the mean codec, and returns figures to log.
        """
        saved = time.monotonic()
        while budget.left_s > 0:
            if self.progress.step % self.plan.refresh_every == 0 or not self.bank.seconds:
                self.bank.refresh()
            figures = self.take_step(budget.find_scale())
            step = self.progress.step
            if step % self.plan.log_every == 0:
                self.log(figures)
            if step % self.plan.judge_every == 0:
                self.log(judge(self.mean))
            if time.monotonic() - saved > self.plan.save_every_s:
                self.save()
                saved = time.monotonic()
        self.save()
        self.log(judge(self.mean))

    def take_step(self, scale: float = 1.0) -> dict[str, float]:
        """One step on crops that depend on the seed and the step alone; returns figures to log.

        Args:
            scale: of the rate.
        """
        began = time.process_time()
        step, plan = self.progress.step, self.plan
        rng = np.random.default_rng([plan.seed, step])
        rate = scale * choose_rate(plan, step, self.progress.begun)
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group["share"]
        sound = self.bank.draw(rng, plan.rows)
        loss = self.measure_loss(sound, rng)
        self._optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(self.codec.parameters(), CLIP_NORM)
        self._optimizer.step()
        self.progress.step += 1
        if self.progress.step % plan.mean_every == 0:
            self._update_mean()
        self.progress.cpu_seconds += time.process_time() - began
        crop_s = plan.crop_frames * self.config.samples_per_frame / self.codec.decoder.sample_rate
        self.progress.audio_seconds += plan.rows * crop_s
        return {"spectral": loss.item(), "gradient": float(norm), "rate": rate}

    def measure_loss(self, sound: PitchedSound, rng: np.random.Generator) -> torch.Tensor:
        """The spectral loss [] of crops with their lead."""
        decoder, rows = self.codec.decoder, len(sound.samples)
        # WHY bfloat16: it takes a third off a step.
        with torch.autocast(sound.samples.device.type, torch.bfloat16):
            latents = self.codec.encode(sound).float()
            gains = decoder.run_trunk(decoder.init_state(rows), latents)
        lead = self.plan.lead_frames * self.config.hops_per_frame
        hertz, voicing = (value[:, lead:] for value in decoder.read_pitch(latents.detach()))
        source = decoder.init_state(rows)
        source.place.copy_(torch.from_numpy(rng.integers(NOISE_HOPS, size=rows)))
        output = decoder.make_sound(source, gains[:, lead:], hertz, voicing)
        skipped = SETTLE_HOPS * decoder.lag
        ours = output[:, decoder.lag + skipped :]
        begin = self.plan.lead_frames * self.config.samples_per_frame + skipped
        theirs = sound.samples[:, begin : begin + ours.shape[1]]
        loss: torch.Tensor = self._spectral(ours, theirs)
        return loss

    @torch.no_grad()
    def _update_mean(self) -> None:
        updates = self.progress.step // self.plan.mean_every
        decay = min(self.plan.mean_decay, updates / (updates + 9))
        mine = list[torch.Tensor](self.mean.parameters())
        theirs = list[torch.Tensor](self.codec.parameters())
        torch._foreach_lerp_(mine, theirs, 1 - decay)

    def log(self, figures: dict[str, Any]) -> None:
        """Appends a line of JSON to the curve."""
        line = {
            "step": self.progress.step,
            "cpu_seconds": round(self.progress.cpu_seconds),
            "time": round(time.time()),
            "voices": len(self.bank.seconds),
            "hours": round(sum(self.bank.seconds.values()) / 3600, 2),
            **{k: round(v, 5) if isinstance(v, float) else v for k, v in figures.items()},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "filter_codec.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        logger.info("%s", line)
