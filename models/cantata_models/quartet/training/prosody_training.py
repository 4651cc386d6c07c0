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

from cantata_layers.training.device import CPU, upload
from cantata_layers.training.loop import log_figures, save_checkpoint
from cantata_layers.training.mixed_precision import autocast_bfloat16
from cantata_models.quartet.network import (
    ENERGY_SCALE,
    PITCH_SCALE,
    ProsodyPredictor,
    QuartetNetwork,
)
from cantata_models.quartet.training.bank import PhoneBatch, SpeechBank, SpokenBy, stack_phones
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
from cantata_models.quartet.training.shards import AnnotatedSpeech

CLIP_NORM = 1.0
SPEAKER_RATE = 3.0
"""The share of the rate for what tells speakers apart, which begins with nothing."""
MIN_VOICED_HZ = 40.0
ENDING_FRAMES = 33
"""0.4 s."""
MIN_SPREAD = 0.01
"""Octaves; a melody that moves less is none."""


@dataclass(frozen=True, slots=True)
class ProsodyPlan:
    """How the predictor is trained."""

    rows: int = 12
    rate: float = 3e-4
    warm_steps: int = 50
    movement_weight: float = 1.0
    """The weight of errors in how the pitch moves from frame to frame."""
    ending_weight: float = 8.0
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


@dataclass(frozen=True, slots=True)
class MelodyBatch:
    """Whole utterances, and what the predictor should say of them.

    Which values count is said by their places: a mask's size would have to be read from a GPU.
    """

    whole: PhoneBatch
    speeds: torch.Tensor
    """[B, 1]."""
    contours: Contours
    """The teacher's; 0 where an utterance has ended."""
    weights: torch.Tensor
    """[B, F] of the pitch; 0 where an utterance has ended."""
    spoken_phones: torch.Tensor
    """[P] int64: places of all phones but padding in B * T."""
    spoken_frames: torch.Tensor
    """[Q] int64: places of all frames but padding in B * F."""
    moves: int
    """Frames but padding and each row's first."""


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
    """On the CPU. Its prosody predictor is trained, and holds the running mean after `run`."""
    stock: int
    """The number of voices that the network knows."""
    held_out: Sequence[SpokenBy]
    """Speech that is never trained on."""
    plan: ProsodyPlan = field(default_factory=ProsodyPlan)
    device: torch.device = CPU
    """Where the network learns. It is judged on the CPU."""
    step: int = field(init=False, default=0)
    cpu_seconds: float = field(init=False, default=0.0)
    trained: ProsodyPredictor = field(init=False)
    _mean: ProsodyPredictor = field(init=False)
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
        self._mean = place_mean(self.network.prosody, self.device)
        self.trained.to(self.device)
        kinds = dict[bool, list[nn.Parameter]]({False: [], True: []})
        for name, parameter in self.trained.named_parameters():
            is_speaker = "speaker" in name or "bias.weight" in name
            kinds[is_speaker].append(parameter)
        groups = [{"params": kinds[one], "share": SPEAKER_RATE if one else 1.0} for one in kinds]
        self._optimizer = torch.optim.AdamW(groups, lr=self.plan.rate, weight_decay=0.01)

    def save(self) -> None:
        """Write the checkpoint, which any device continues. The optimizer begins anew after it."""
        write_back(self._mean, self.network.prosody)
        state = {
            "trained": copy_weights(self.trained),
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
                self._log(read_figures(figures))
            if self.step % self.plan.judge_every == 0:
                self.save()
                self._log(self.judge())
        self.save()
        self._log(self.judge())

    def take_step(self, scale: float = 1.0) -> dict[str, torch.Tensor]:
        """Take one step on utterances that depend on the step alone.

        Args:
            scale: of the rate.

        Returns:
            Figures to log, [] each, on the device, so that the host need not wait for it.
        """
        began = time.process_time()
        for group in self._optimizer.param_groups:
            group["lr"] = self.plan.rate * group["share"] * scale
        drawn = self.bank.draw_whole(np.random.default_rng(self.step), self.plan.rows)
        batch = upload(stack_melodies(drawn, self.plan.ending_weight), self.device)
        with autocast_bfloat16(self.device.type):
            figures = measure_prosody(self.trained, batch)
        loss = figures["duration"] + figures["pitch"] + figures["energy"]
        loss = loss + self.plan.movement_weight * figures["movement"]
        self._optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.trained.parameters(), CLIP_NORM)
        self._optimizer.step()
        self.step += 1
        update_mean(self._mean, self.trained, self.step)
        self.cpu_seconds += time.process_time() - began
        return {name: value.detach() for name, value in figures.items()}

    @torch.no_grad()
    def judge(self) -> dict[str, Any]:
        """Errors on held-out speech, of the mean weights, and how far the pitch spreads."""
        write_back(self._mean, self.network.prosody)
        figures = measure_prosody(self.network.prosody, stack_melodies(self.held_out))
        judged = {f"held_out_{name}": value.item() for name, value in figures.items()}
        return judged | measure_spread(self.network.prosody, self.held_out)

    def _log(self, figures: dict[str, Any]) -> None:
        place = {"step": self.step, "cpu_seconds": round(self.cpu_seconds)}
        log_figures(self.path.with_suffix(".jsonl"), place | figures)


def stack_melodies(drawn: Sequence[SpokenBy], ending_weight: float = 1.0) -> MelodyBatch:
    """Utterances of any length as one batch.

    Args:
        drawn: what the predictor should predict.
        ending_weight: of the pitch in the last `ENDING_FRAMES` that questions are voiced in.
    """
    whole, spoken = stack_phones(drawn), [one.spoken for one in drawn]
    known = _pad([torch.ones(len(one.pitch), dtype=torch.bool) for one in spoken])
    pitch, energy = (
        _pad([torch.from_numpy(values) for values in rows])
        for rows in ([one.pitch for one in spoken], [one.energy for one in spoken])
    )
    return MelodyBatch(
        whole,
        torch.tensor([one.speed for one in spoken])[:, None],
        Contours(pitch, energy),
        _pad([_weigh(one, ending_weight) for one in spoken]),
        (whole.durations > 0).flatten().nonzero()[:, 0],
        known.flatten().nonzero()[:, 0],
        int(known[:, 1:].sum()),
    )


def predict_contours(
    predictor: ProsodyPredictor, batch: MelodyBatch
) -> tuple[torch.Tensor, Contours]:
    """[B, T] log durations, and the contours on the teacher's durations."""
    whole = batch.whole
    speaker = predictor.speakers(whole.speakers, whole.features)
    encoded, logs = predictor.predict_durations(whole.phones, speaker, whole.mask)
    rows = [
        row.repeat_interleave(counts, 0, output_size=length)
        for row, counts, length in zip(encoded, whole.durations, whole.lengths, strict=True)
    ]
    pitch, energy = predictor.predict_contour(_pad(rows), speaker)
    return logs, Contours(pitch, energy)


def measure_prosody(predictor: ProsodyPredictor, batch: MelodyBatch) -> dict[str, torch.Tensor]:
    """Mean absolute errors [] in the network's own units."""
    logs, contours = predict_contours(predictor, batch)
    wanted = torch.log(batch.whole.durations * batch.speeds + 1)
    duration = _pick((logs - wanted).abs(), batch.spoken_phones).mean()
    error = (contours.pitch - batch.contours.pitch) / PITCH_SCALE
    louder = (contours.energy - batch.contours.energy) / ENERGY_SCALE
    return {
        "duration": duration,
        "pitch": (error.abs() * batch.weights).sum() / len(batch.spoken_frames),
        "movement": (torch.diff(error).abs() * batch.weights[:, 1:]).sum() / batch.moves,
        "energy": _pick(louder.abs(), batch.spoken_frames).mean(),
    }


def _pad(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    return pad_sequence(list(rows), batch_first=True)


def _pick(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return values.flatten().index_select(0, places)


def _weigh(spoken: AnnotatedSpeech, ending_weight: float) -> torch.Tensor:
    """[F] weights of the pitch."""
    weights = torch.ones(len(spoken.pitch))
    voiced = np.flatnonzero(spoken.pitch > MIN_VOICED_HZ)
    if spoken.text.endswith("?") and len(voiced):
        last = int(voiced[-1]) + 1
        weights[max(last - ENDING_FRAMES, 0) : last] = ending_weight
    return weights


def measure_spread(predictor: ProsodyPredictor, drawn: Sequence[SpokenBy]) -> dict[str, float]:
    """The standard deviation of the pitch within utterances, of the teacher's; by voice."""
    _, contours = predict_contours(predictor, stack_melodies(drawn))
    shares = dict[str, list[float]]()
    for one, pitch in zip([one.spoken for one in drawn], contours.pitch, strict=True):
        ours = pitch[: len(one.pitch)].numpy()
        both = (ours > MIN_VOICED_HZ) & (one.pitch > MIN_VOICED_HZ)
        spread = max(float(np.log2(one.pitch[both]).std()), MIN_SPREAD)
        share = np.log2(ours[both]).std() / spread
        shares.setdefault(one.voice, []).append(float(share))
    return {f"spread_{voice}": float(np.mean(found)) for voice, found in sorted(shares.items())}
