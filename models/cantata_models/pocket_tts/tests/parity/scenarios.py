"""What is compared with the reference; the reference's environment runs this too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata_models.pocket_tts.random_checkpoint import SHAPES, write_checkpoint

SEED = 3
CHECKPOINTS = ("tiny", "first", "small")


def write(name: str, folder: Path) -> Path:
    """Write one of the checkpoints into a folder of its own, and return that."""
    return write_checkpoint(folder / name, SHAPES[name], SEED)


@dataclass(frozen=True, slots=True)
class PocketScenario:
    """A request of both programs."""

    name: str
    text: str
    checkpoint: str = "tiny"
    seed: int = 1
    voice: str = "alba"
    seconds: float = 0.0
    """Of the recording, which takes the voice's place."""
    silent_s: float = 0.0
    """Of silence at its end."""
    sample_rate: int = 24_000
    """Hz, of the recording."""
    temperature: float = 0.3
    noise_clamp: float | None = None
    steps: int = 1
    eos_threshold: float = 0.0
    """No frame of these checkpoints reaches 0."""
    frames_after_eos: int | None = None
    max_frames: int = 8
    """Of each piece."""


LONG = (
    "The other one was there, and nobody had seen it. He had 3.5 of them; she had none! Was that "
    "the end of it? Not at all, he said: the rain went on, the river rose, and on the third day "
    "they left the house. It was over."
)
SCENARIOS = (
    PocketScenario("plain", "Hello there, the other one."),
    PocketScenario("still", "the other one is on the table", temperature=0.0, seed=2),
    PocketScenario("warm", "Yes", temperature=1.3, seed=2**40 + 7),
    PocketScenario("clamped", "Hello there.", temperature=0.8, noise_clamp=0.7, seed=5),
    PocketScenario("steps", "Hello there, she said.", steps=3, seed=6),
    PocketScenario("old_state", "The other one is there.", voice="marius", seed=7),
    PocketScenario("recording", "The rain is over.", seconds=0.91, silent_s=0.3, seed=8),
    PocketScenario("recording_44", "The rain is over.", seconds=1.3, sample_rate=44_100, seed=9),
    PocketScenario("ends", "Hello there, the other one.", eos_threshold=-6.0, max_frames=30),
    PocketScenario("ends_few", "Hello.", eos_threshold=-6.3, max_frames=30, seed=4),
    PocketScenario(
        "ends_soon",
        "Hello there, the other one.",
        eos_threshold=-9.0,
        frames_after_eos=0,
        max_frames=30,
    ),
    PocketScenario("long", LONG, max_frames=3, seed=10),
    PocketScenario("first", "Hello there", checkpoint="first", seed=3),
    PocketScenario("first_recording", "Nothing is there.", checkpoint="first", seconds=0.5, seed=4),
    PocketScenario("small", 'He said; "nothing" \u2013 twice.', checkpoint="small", seed=11),
    PocketScenario(
        "small_ends",
        "Hello there, the other one.",
        checkpoint="small",
        eos_threshold=-9.0,
        max_frames=30,
        seed=12,
    ),
    PocketScenario(
        "small_recording", "Nothing is there.", checkpoint="small", seconds=0.7, seed=13
    ),
)
TEXTS = (
    "Hello",
    "one two three four",
    "one two three four five,",
    '  "Is it?" ',
    "Wait...   what?!\nNo - ",
    '"Hi?", she said; "go."',
    "It cost 3.50 and 1.5 more. Then 4. Five came.",
    LONG,
    "word " * 60,
    "first part, second part; third: " * 8,
    "A. B! C? D\u2026 E",
    "caf\u00e9 \u2019twas \u2013 done",
    "a  b   c    d",
)
"""Cut into pieces by both programs."""


def scenario_named(name: str) -> PocketScenario:
    """Return the only scenario of this name."""
    (found,) = (scenario for scenario in SCENARIOS if scenario.name == name)
    return found


def record(scenario: PocketScenario) -> NDArray[np.float32]:
    """[N]: not a voice, but two tones that move, and noise; in 16-bit steps, as files have them."""
    count = int(scenario.seconds * scenario.sample_rate)
    time = np.arange(count) / scenario.sample_rate
    tones = np.sin(2 * np.pi * (170 * time + 40 * time**2)) + 0.5 * np.sin(2 * np.pi * 611 * time)
    noise = np.random.RandomState(scenario.seed).random_sample(count) - 0.5
    wave = (0.3 + 0.2 * np.sin(15 * time)) * tones + 0.1 * noise
    silence = np.zeros(int(scenario.silent_s * scenario.sample_rate))
    samples = np.round(np.concatenate([wave, silence]) * 32_767) / 32_768
    return np.asarray(samples, np.float32)
