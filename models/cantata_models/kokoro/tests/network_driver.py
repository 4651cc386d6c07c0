"""What our networks make of the scenarios, and what the reference made."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.kokoro.tests.parity.scenarios import KokoroScenario, make_noise, settle_phases
from cantata_models.kokoro.tests.parity.write_goldens import GOLDENS, PCM_STRIDE
from cantata_models.kokoro.voices import KokoroInput

CURVE_TOLERANCE = 1e-4
"""Of pitch and energy, relative to their largest value."""
CURVES = ("pitch", "energy")
PCM_TOLERANCE = 1e-4
"""Of the samples: the root mean square of the error in a tenth of a second, relative to theirs."""
RARE, RARE_TOLERANCE = 0.1, 0.2
"""So many tenths of a second may differ by more: where a bin of the source's spectrum is nearly 0,
or its phase within a millionth of where it jumps by a turn, rounding decides, and that happens once
in some seconds."""
SPREAD = 0.02
"""Of such a place's error, which all others may have besides: the norms' moments are those of the
whole sentence. Found: 0.006, and none of it once the one bin (its phase 4e-7 from the jump) is
turned as in the reference."""
BLOCK = 2400 // PCM_STRIDE
MODULES = tuple(
    f"cantata_models.kokoro.{name}"
    for name in (
        "config",
        "text_network",
        "sound_network",
        "checkpoint",
        "voices",
        "voice",
    )
)
"""In import order."""


@dataclass(frozen=True, slots=True)
class KokoroSpoken:
    """One sentence, whole."""

    durations: NDArray[np.int64]
    pitch: NDArray[np.float32]
    energy: NDArray[np.float32]
    samples: NDArray[np.float32]


def make_input(scenario: KokoroScenario, vocabulary: Mapping[str, int]) -> KokoroInput:
    """The stage's input of a scenario, without words."""
    phones = [0, *(vocabulary[letter] for letter in scenario.phones), 0]
    return KokoroInput(
        voices=tuple(scenario.voices),
        weights=tuple(scenario.voices.values()),
        phones=np.array(phones, np.int64),
        words=np.zeros((0, 2), np.int64),
        speed=scenario.speed,
        seed=0,
        begins=False,
    )


def speak_whole(checkpoint: Path, scenario: KokoroScenario) -> KokoroSpoken:
    """Run a scenario, the sound with the reference's own curves: an error of a millionth in the
    pitch turns the last harmonics of a sentence by a tenth of a degree, and where that crosses half
    a turn, the source's spectrum has another sign.

    The modules are looked up now, so that a fault in their source counts.
    """
    voice = importlib.import_module("cantata_models.kokoro.voice").load_voice(
        checkpoint, torch.device("cpu")
    )
    # In float32 throughout, whatever the CPU can.
    network = importlib.import_module("cantata_models.kokoro.checkpoint").load_network(
        checkpoint, voice.network.config, voice.device
    )
    given = make_input(scenario, network.config.vocabulary)
    style = voice.mix_style(given)
    prosody = network.predict(torch.from_numpy(given.phones), style, given.speed)
    pitches = prosody.pitch.shape[1]
    noise = make_noise(scenario.noise, pitches * network.config.generator.samples_per_pitch)
    curves = {what: torch.from_numpy(golden(scenario, what))[None] for what in CURVES}
    if curves["pitch"].shape != prosody.pitch.shape:
        curves = {}  # the durations differ
    excitation = network.excite(replace(prosody, **curves), style, noise)
    magnitudes, phases = excitation.source.chunk(2, dim=1)
    source = torch.cat([magnitudes, settle_phases(phases)], dim=1)
    return KokoroSpoken(
        durations=prosody.durations.numpy(),
        pitch=prosody.pitch[0].numpy(),
        energy=prosody.energy[0].numpy(),
        samples=network.generate(replace(excitation, source=source), 0, pitches).numpy(),
    )


@cache
def _goldens() -> dict[str, NDArray[np.float32]]:
    with np.load(GOLDENS / "speech.npz") as file:
        return dict(file)


def golden(scenario: KokoroScenario, what: str) -> NDArray[np.float32]:
    """What the reference made."""
    return _goldens()[f"{scenario.name}/{what}"]


def differences(spoken: KokoroSpoken, scenario: KokoroScenario) -> list[str]:
    """Where a sentence differs from the reference's; empty: nowhere."""
    if not np.array_equal(spoken.durations, golden(scenario, "durations")):
        return ["durations"]
    found = []
    for what, curve in (("pitch", spoken.pitch), ("energy", spoken.energy)):
        theirs = golden(scenario, what)
        off = np.abs(curve - theirs).max() / np.abs(theirs).max()
        if not off < CURVE_TOLERANCE:
            found.append(f"{what} by {off:.1e}")
    if len(spoken.samples) != golden(scenario, "samples"):
        return [*found, "samples in number"]
    theirs = golden(scenario, "pcm")
    error = np.square(spoken.samples[::PCM_STRIDE] - theirs)
    blocks = np.sqrt(np.add.reduceat(error, range(0, len(error), BLOCK)) / BLOCK) / theirs.std()
    often = float(np.quantile(blocks, 1 - RARE, method="higher"))
    worst = float(blocks.max())
    if not (often < PCM_TOLERANCE + SPREAD * worst and worst < RARE_TOLERANCE):
        found.append(f"samples by {often:.1e}, at most {worst:.1e}")
    return found


def expect_word_times(
    words: NDArray[np.int64], ends: NDArray[np.float64]
) -> list[tuple[float, float]]:
    """Moved by 75 ms; spaces shorter than 100 ms belong to the word before them.

    Args:
        words: [W, 2] phones [start, end) of each.
        ends: [T + 1] seconds at which phones end, 0 first.
    """
    nexts = [*(float(ends[begin]) for begin, _ in words[1:]), np.inf]
    return [
        (ends[begin] - 0.075, (after if after - ends[end] < 0.1 - 1e-9 else ends[end]) - 0.075)
        for (begin, end), after in zip(words, nexts, strict=True)
    ]
