"""What is compared with the reference. Imports nothing of the backend: the reference's environment
has none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cantata_models.voxcpm2.random_checkpoint import (
    TINY,
    TINY_STRETCHED,
    use_pickles,
    write_checkpoint,
)


@dataclass(frozen=True, slots=True)
class VoxCpm2CheckpointKey:
    """One checkpoint of random weights."""

    name: str
    seed: int

    def write(self, folder: Path) -> Path:
        """Write it into a folder of its own, and return that."""
        shapes: dict[str, dict[str, Any]] = {"tiny": TINY, "stretched": TINY_STRETCHED}
        made = write_checkpoint(folder / f"{self.name}-{self.seed}", shapes[self.name], self.seed)
        return use_pickles(made) if self.name == "stretched" else made


TINY_3, STRETCHED_3 = VoxCpm2CheckpointKey("tiny", 3), VoxCpm2CheckpointKey("stretched", 3)


@dataclass(frozen=True, slots=True)
class VoxCpm2Scenario:
    """A request of both programs."""

    name: str
    text: str
    checkpoint: VoxCpm2CheckpointKey = TINY_3
    seed: int = 1
    description: str | None = None
    """In front of the text, in brackets."""
    mode: str = "plain"
    """As `inputs.Mode`."""
    seconds: float = 0.0
    """Of the recording."""
    sample_rate: int = 16_000
    """Hz, of the recording."""
    transcript: str = ""
    steps: int = 10
    guidance: float = 2.0
    max_frames: int = 10


SCENARIOS = (
    VoxCpm2Scenario("plain", "Hello there, the other one.", seed=6),
    VoxCpm2Scenario("chinese", "你好世界, she said \n  早上好 twice.", seed=2, max_frames=8),
    VoxCpm2Scenario("described", "Yes.", seed=3, description="a calm old man"),
    VoxCpm2Scenario("clone", "The other one is there.", mode="voice_clone", seconds=0.91),
    VoxCpm2Scenario(
        "clone_described",
        "The rain is over.",
        description="whispering",
        mode="voice_clone",
        seconds=0.45,
        sample_rate=24_000,
    ),
    VoxCpm2Scenario(
        "continuation",
        " and then it stopped.",
        mode="continuation",
        seconds=1.23,
        transcript="It rained all day,",
    ),
    VoxCpm2Scenario(
        "short_continuation",
        "Yes, the other.",
        seed=4,
        mode="continuation",
        seconds=0.25,
        sample_rate=44_100,
        transcript="Hello. ",
    ),
    VoxCpm2Scenario(
        "combined",
        "Nothing is there.",
        seed=5,
        mode="combined",
        seconds=0.77,
        transcript="Hello there. ",
    ),
    VoxCpm2Scenario("few_steps", "Hello there.", steps=4, guidance=3.0),
    VoxCpm2Scenario("many_steps", "Hello there.", steps=50, guidance=1.0, max_frames=5),
    VoxCpm2Scenario("cut", "Hello there, the other one.", seed=2**40 + 7, max_frames=2),
    VoxCpm2Scenario("stretched", "Hello there, she said.", checkpoint=STRETCHED_3, max_frames=7),
    VoxCpm2Scenario(
        "stretched_combined",
        "Could you tell me?",
        checkpoint=STRETCHED_3,
        seed=6,
        mode="combined",
        seconds=1.0,
        transcript="Early, ",
        max_frames=8,
    ),
)


def scenario_named(name: str) -> VoxCpm2Scenario:
    """Return the only scenario of this name."""
    (found,) = (scenario for scenario in SCENARIOS if scenario.name == name)
    return found
