"""The conversations that the reference and this implementation speak, and the codes they decode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata_models.qwen25_omni.random_checkpoint import TINY, token_ids

CHECKPOINT_SEED, OTHER_SEED = 6, 1
TOKEN2WAV_SEED = 2
LONG, SHORT = 101, 29
"""Codes of the whole decodes. Both end inside a block, the short one in its third."""
WINDOWED = (12, 48, 101)
"""Codes of the windowed decodes: one block, a window with what is ahead of it, inside a block."""
SPEAKERS = ("Chelsie", "Ethan")
GRID = (1, 4, 8)
"""Patches of a picture in time, height and width; four make a token."""
PATCH = 3 * 2 * 14 * 14
"""Values of a patch."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message, of text and of sound or a picture."""

    role: str
    text: str
    sound_frames: int = 0
    """Mel frames of a sound before the text."""
    picture: bool = False
    """Whether a picture is before the text: `GRID` patches."""


@dataclass(frozen=True, slots=True)
class Qwen25OmniScenario:
    """One answer, greedy in the thinker and in the talker."""

    name: str
    turns: tuple[Turn, ...]
    answer: int
    """Its tokens, the one that ends it included."""
    max_frames: int
    speaker: str = "Chelsie"
    cut: bool = False
    """It is cut at its length; otherwise it ends with its last token."""
    penalty: float = 1.05
    """Of repeated codes."""
    seed: int = CHECKPOINT_SEED

    @property
    def has_picture(self) -> bool:
        """Whether positions have three axes."""
        return any(turn.picture for turn in self.turns)


USER = Turn("user", "What does the rain say?")
SYSTEM = Turn("system", "You are Qwen, a virtual human.")
COUNT = Turn("user", "Count.")
HEARD = Turn("user", "What was that?", sound_frames=30)
SCENARIOS = (
    Qwen25OmniScenario("text", (USER,), 9, 24),
    Qwen25OmniScenario("other speaker", (USER,), 9, 24, speaker="Ethan"),
    Qwen25OmniScenario("system", (SYSTEM, Turn("user", "Name a river.")), 6, 24),
    Qwen25OmniScenario(
        "two turns",
        (SYSTEM, USER, Turn("assistant", "Drop, drop."), Turn("user", "And the wind?")),
        7,
        24,
        speaker="Ethan",
    ),
    Qwen25OmniScenario("cut", (COUNT,), 5, 24, cut=True),
    Qwen25OmniScenario("one token", (Turn("user", "Yes or no?"),), 2, 24),
    Qwen25OmniScenario("answer longer than speech", (USER,), 30, 12, cut=True),
    Qwen25OmniScenario("sound", (HEARD,), 6, 24),
    Qwen25OmniScenario("end code", (USER,), 9, 24, speaker="Ethan", seed=OTHER_SEED),
    Qwen25OmniScenario("picture", (SYSTEM, Turn("user", "What is this?", picture=True)), 6, 24),
    # Without the penalty for the prompt's codes, the pad code would end it after the first code.
    Qwen25OmniScenario("prompt penalty", (COUNT,), 5, 24, cut=True, penalty=1.2, seed=OTHER_SEED),
    Qwen25OmniScenario("pad code", (Turn("user", "Yes or no?"),), 2, 24, seed=OTHER_SEED),
)


def sound_tokens(frames: int) -> int:
    """How many tokens stand for a sound."""
    return ((frames - 1) // 2 - 1) // 2 + 1


def prompt_ids(tokenizer: Tokenizer, turns: tuple[Turn, ...]) -> list[int]:
    """The prompt of a conversation, up to where its answer begins."""
    ids, special = list[int](), token_ids(TINY)
    start, end = special["<|im_start|>"], special["<|im_end|>"]
    for turn in turns:
        sound = [special["<|AUDIO|>"]] * sound_tokens(turn.sound_frames)
        if turn.sound_frames:
            sound = [special["<|audio_bos|>"], *sound, special["<|audio_eos|>"]]
        if turn.picture:
            picture = [special["<|IMAGE|>"]] * (GRID[1] * GRID[2] // 4)
            sound += [special["<|vision_bos|>"], *picture, special["<|vision_eos|>"]]
        ids += [start, *tokenizer.encode(f"{turn.role}\n").ids, *sound]
        ids += [*tokenizer.encode(turn.text).ids, end, *tokenizer.encode("\n").ids]
    return [*ids, start, *tokenizer.encode("assistant\n").ids]


def random_codes(count: int, codes: int) -> NDArray[np.int64]:
    """[count] codes of a token2wav golden."""
    return np.random.RandomState(7).randint(0, codes, count)


def random_noise(frames: int, mels: int) -> NDArray[np.float32]:
    """[frames, mels] the noise of a token2wav golden."""
    return np.random.RandomState(8).standard_normal((frames, mels)).astype(np.float32)
