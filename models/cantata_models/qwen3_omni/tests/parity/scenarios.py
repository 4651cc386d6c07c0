"""The dialogues that both the reference and this implementation answer, all of them greedily."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cantata_layers.omni.messages import Part, PromptMessage, PromptRole, Text
from cantata_layers.omni.tests.media import film, picture, sound, video

GOLDENS = Path(__file__).parents[1] / "goldens"
MIN_GAP = 1e-3
"""If the two best scores are closer than this, rounding alone could swap them."""


@dataclass(frozen=True, slots=True)
class Qwen3OmniScenario:
    """One dialogue."""

    name: str
    seed: int
    """Of the tiny checkpoint."""
    messages: tuple[PromptMessage, ...]
    speaker: str | None = "ethan"
    """None: the answer is not spoken."""
    max_tokens: int = 24
    """Of the answer."""
    max_frames: int = 24


def _user(*parts: Part | str) -> PromptMessage:
    made = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return PromptMessage(PromptRole.USER, made)


def _said(role: PromptRole, text: str) -> PromptMessage:
    return PromptMessage(role, (Text(text),))


SYSTEM = _said(PromptRole.SYSTEM, "You answer briefly.")
SCENARIOS: tuple[Qwen3OmniScenario, ...] = (
    Qwen3OmniScenario("text", 1, (_user("Good morning! How are you?"),)),
    Qwen3OmniScenario("system", 3, (SYSTEM, _user("Wie heißt du? 你叫什么？")), speaker="chelsie"),  # noqa: RUF001
    Qwen3OmniScenario("line_feeds", 1, (_user("\n One\n\n two\n", " and three.\n"),)),
    Qwen3OmniScenario("sound", 1, (_user(sound(1.53, 1), "What is this?"),)),
    Qwen3OmniScenario(
        "two_sounds", 1, (_user(sound(0.31, 2), sound(2.0, 3), "Compare."),), speaker="aiden"
    ),
    Qwen3OmniScenario("picture", 1, (_user("Look: ", picture(64, 96, 1), " What is it?"),)),
    Qwen3OmniScenario(
        "two_pictures",
        1,
        (_user(picture(96, 64, 2), "and", picture(64, 128, 3), "differ, but how?"),),
        speaker="chelsie",
    ),
    Qwen3OmniScenario("resized_picture", 5, (_user(picture(50, 101, 4)),)),
    Qwen3OmniScenario("video", 1, (_user(video(3, 352, 384, 2.0, 5), "What happens?"),)),
    Qwen3OmniScenario(
        "mixed",
        3,
        (
            SYSTEM,
            _user(
                "First ", sound(0.7, 4), picture(64, 64, 6), "then", video(2, 384, 352, 1.0, 7), "?"
            ),
        ),
    ),
    Qwen3OmniScenario(
        "two_turns",
        1,
        (
            _user(picture(64, 64, 8), "What colour?"),
            _said(PromptRole.ASSISTANT, "Many colours."),
            _user(sound(0.5, 5), "And this?"),
        ),
        speaker="aiden",
    ),
    Qwen3OmniScenario("film", 1, (_user("Look: ", film(3, 352, 384, 2.0, 1.37, 12), "and?"),)),
    Qwen3OmniScenario("cut", 1, (_user("Tell me a long story."),), max_tokens=5),
    Qwen3OmniScenario("text_only", 1, (_user("Good evening."),), speaker=None),
    Qwen3OmniScenario("text_only_video", 1, (_user(video(3, 352, 384, 3.0, 9)),), speaker=None),
)


def scenario_named(name: str) -> Qwen3OmniScenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)
