# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""What is compared with the reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from cantata_models.kokoro.random_checkpoint import write_checkpoint
from cantata_models.kokoro.sound_network import HARMONICS


@dataclass(frozen=True, slots=True)
class KokoroCheckpointKey:
    """One checkpoint of random weights."""

    name: str
    seed: int
    affine: bool = False
    """With gains and offsets of the norms."""
    wrapped: bool = True
    """With `module.` in front of the weights' names."""

    def write(self, folder: Path) -> Path:
        """Write it into a folder of its own, and return that."""
        path = folder / f"{self.name}-{self.seed}"
        return write_checkpoint(path, self.seed, affine=self.affine, wrapped=self.wrapped)


PLAIN = KokoroCheckpointKey("plain", 3)
AFFINE = KokoroCheckpointKey("affine", 4, affine=True, wrapped=False)
LONGEST = ("kˈɪk wˌʌz hˈɛɹ, ˈOvəɹ ðə lˈAzi dˈɔɡ; " * 14)[:510]


@dataclass(frozen=True, slots=True)
class KokoroScenario:
    """One sentence of both programs."""

    name: str
    phones: str
    """Letters of the vocabulary."""
    checkpoint: KokoroCheckpointKey = PLAIN
    voices: Mapping[str, float] = field(default_factory=lambda: {"af_heart": 1.0})
    """And the share of each in the style."""
    speed: float = 1.0
    noise: int = 1
    """Its seed."""


SCENARIOS = (
    KokoroScenario("short", "hˈI."),
    KokoroScenario("sentence", "ðə kwˈɪk bɹˈWn fˈɑks, ʤˈʌmpt ˈOvəɹ."),
    KokoroScenario("other_noise", "wˌɪʧ wʌz hˈʌŋɡɹi?", noise=4),
    KokoroScenario("slow", "lˈAzi dˈɔɡ!", speed=0.5, noise=2),
    KokoroScenario("fast", "ðə mˈɔɹnɪŋ tɹˈAn wʌz lˈAt əɡˈɛn.", speed=2.0),
    KokoroScenario("another_style", "kʊd jˈu tˈɛl mˌi?", voices={"am_adam": 1.0}),
    KokoroScenario("british", "ɪt wɒz lˈAt, sˈQ wi wˈɛnt hˈQm.", voices={"bf_emma": 1.0}),
    KokoroScenario("blend", "fˈʊl ʌv tˈu.", voices={"af_heart": 2 / 3, "am_adam": 1 / 3}, noise=3),
    KokoroScenario("longest", LONGEST, speed=1.9),
    KokoroScenario("affine", "ʃi ɹˈɛd ɪt twˈIs.", checkpoint=AFFINE),
)


def scenario_named(name: str) -> KokoroScenario:
    """Return the only scenario of this name."""
    (found,) = (scenario for scenario in SCENARIOS if scenario.name == name)
    return found


def make_noise(seed: int, samples: int) -> torch.Tensor:
    """[N, harmonics] of variance 1, with the same bits on every machine."""
    drawn = np.random.RandomState(seed).random_sample((samples, HARMONICS))
    return torch.from_numpy(((drawn - 0.5) * 12**0.5).astype(np.float32))


def settle_phases(phases: torch.Tensor) -> torch.Tensor:
    """The source's phases, those of almost minus half a turn as half a turn.

    The first and the last spectrum are of mirrored samples and so are real: where they are
    negative, rounding alone decides between plus and minus half a turn. Done to both programs.
    """
    return torch.where(phases < -math.pi + 0.01, math.pi, phases)
