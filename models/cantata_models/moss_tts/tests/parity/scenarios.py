"""The utterances that both the published code and this implementation speak, all of them greedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata_models.moss_tts.prompt import Fields, MossMode

GOLDENS = Path(__file__).parents[1] / "goldens"
MIN_GAP = 1e-3
"""If the two best scores are closer than this, rounding alone could swap them."""
PUBLISHED_PENALTY = 1.2
"""Nano's."""


class Model(StrEnum):
    """The two models."""

    LOCAL = "local"
    NANO = "nano"


@dataclass(frozen=True, slots=True)
class MossScenario:
    """One utterance."""

    name: str
    model: Model
    seed: int
    """Of the tiny checkpoint."""
    text: str
    mode: MossMode = MossMode.PLAIN
    recordings: tuple[int, ...] = ()
    """Number of frames of each recording (`recorded`)."""
    transcript: str = ""
    """Of the recording to continue."""
    described: Fields | None = None
    """For Local."""
    part_tokens: int = 0
    """Most tokens of a part, for a clone by Nano; 0 keeps the text whole."""
    max_frames: int = 24
    penalty: float = 1.0


def recorded(scenario: MossScenario, codebooks: int, codes: int) -> list[NDArray[np.int64]]:
    """[F, Q] frames of each recording, without any pattern."""
    return [
        np.random.RandomState(11 + index).randint(0, codes, (frames, codebooks)).astype(np.int64)
        for index, frames in enumerate(scenario.recordings)
    ]


ENGLISH = "The rain is over, and the street smells of wet stone."
CHINESE = "今天天气真好，我们去公园走走吧。"  # noqa: RUF001
LONG = (
    "the train leaves at nine; do not be late!  She said: “bring the 3 maps, please.” "
    "Then (after a while) they went on\nwithout a word. Nobody asked why."
)


def _local() -> Iterator[MossScenario]:
    def local(name: str, seed: int, text: str, **rest: object) -> MossScenario:
        return MossScenario(name, Model.LOCAL, seed, text, **rest)  # type: ignore[arg-type]

    clone, continuation = MossMode.CLONE, MossMode.CONTINUATION
    yield local("plain", 1, "Good morning.")
    yield local("plain_chinese", 3, CHINESE, described=Fields(language="Chinese"))
    yield local("language", 4, "Guten Morgen.", described=Fields(language="German"))
    yield local("duration", 4, ENGLISH, described=Fields(tokens=40, language="English"))
    yield local("duration_alone", 3, "Ten frames.", described=Fields(tokens=10))
    yield local("instruction", 3, ENGLISH, described=Fields(instruction="  Speak slowly. \n"))
    yield local(
        "all_fields",
        4,
        "Welcome to the museum.",
        described=Fields(
            instruction="像老人一样说话",
            tokens=30,
            quality="high",
            sound_event="a door opens",
            ambient_sound="rain",
            language="Chinese",
        ),
    )
    yield local("pause_mark", 4, "One moment [pause 3.2s] there it is.")
    yield local("long_text", 4, f"{ENGLISH} {LONG}", max_frames=40)
    yield local("clone", 1, "This follows a voice.", mode=clone, recordings=(9,))
    yield local(
        "clone_chinese",
        1,
        CHINESE,
        mode=clone,
        recordings=(17,),
        described=Fields(tokens=50, language="Chinese"),
    )
    yield local("clone_of_two", 4, "Two recordings.", mode=clone, recordings=(6, 4))
    yield local(
        "continuation",
        4,
        "and then it stopped.",
        mode=continuation,
        recordings=(12,),
        transcript="It rained all day,",
    )
    yield local(
        "continuation_chinese",
        4,
        "我们去公园走走吧。",
        mode=continuation,
        recordings=(8,),
        transcript="今天天气真好，",  # noqa: RUF001
        described=Fields(language="Chinese"),
    )
    yield local("penalty", 3, "Good evening.", penalty=1.3, max_frames=40)
    yield local("stop_at_once", 2, "Guten Morgen.", described=Fields(language="German"))


def _nano() -> Iterator[MossScenario]:
    def nano(name: str, seed: int, text: str, **rest: object) -> MossScenario:
        settings = {"penalty": PUBLISHED_PENALTY, **rest}
        return MossScenario(f"nano_{name}", Model.NANO, seed, text, **settings)  # type: ignore[arg-type]

    clone, continuation = MossMode.CLONE, MossMode.CONTINUATION
    yield nano("plain", 6, "Good morning.")
    yield nano("plain_english", 1, ENGLISH, max_frames=40)
    yield nano("stop_at_once", 2, "Good morning.")
    yield nano("plain_chinese", 4, CHINESE)
    yield nano("plain_long", 1, LONG)
    yield nano("without_penalty", 4, "Good morning.", penalty=1.0)
    yield nano("clone", 1, "this follows a voice", mode=clone, recordings=(9,), part_tokens=75)
    yield nano("clone_chinese", 1, CHINESE, mode=clone, recordings=(13,), part_tokens=75)
    yield nano("clone_in_parts", 4, LONG, mode=clone, recordings=(7,), part_tokens=60)
    yield nano(
        "continuation",
        1,
        "and then it stopped.",
        mode=continuation,
        recordings=(12,),
        transcript="It rained all day,",
    )
    yield nano(
        "continuation_chinese",
        6,
        "我们去公园走走吧。",
        mode=continuation,
        recordings=(5,),
        transcript="今天天气真好，",  # noqa: RUF001
    )


SCENARIOS: tuple[MossScenario, ...] = (*_local(), *_nano())


def scenario_named(name: str) -> MossScenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)
