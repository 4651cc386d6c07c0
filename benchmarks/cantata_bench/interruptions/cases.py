"""The cases: what is said or heard over an answer, and whether it should stop it.

Each voice says each text. `TUNED` is what the server's rule was found on; `HELD_OUT` has other
words, other voices and other noises. `WIDE` has again others, by three engines and at several
levels, and at least 60 of each kind. The rule has been changed after faults of both. `UNSEEN` is as
wide, was written before its one measurement, and has changed nothing since: whoever changes the
rule writes the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from cantata_bench.interruptions.noises import NOISES, Sound, mix_babble
from cantata_bench.transcription.recordings import ESPEAK

Kind = Literal["interruption", "backchannel", "noise"]
Say = Callable[[str, str], Sound]
"""Makes speech of a text and a voice: [N] float32 at `RATE`."""

_BABBLE = "babble"
_BABBLE_DB = -15.0
"""Of other people in the room, under the user's voice."""
_BABBLE_S = 3.0
_BABBLED = (
    "The children walk home along the river after school.",
    "We should have painted the door before the rain came.",
    "Every morning the baker puts fresh bread in the window.",
    "Nobody knew where the old road over the hill would lead.",
)
_NOISE_PEAK = 0.5
_LEVELS_DB = (0.0, -5.0, 4.0)
"""Of what is said over an answer, beside the question in the same voice."""
_NOISE_LEVELS_DB = (0.0, -10.0, 5.0)
_BABBLE_LEVELS_DB = (0.0, -5.0, -10.0)


@dataclass(frozen=True, slots=True)
class InterruptionCase:
    """One."""

    kind: Kind
    what: str
    """A text, or the name of a noise."""
    voice: str
    """The user's, as model/voice."""
    seed: int = 0
    """Of a noise."""
    level_db: float = 0.0
    """More or less than the usual level."""

    @property
    def stops(self) -> bool:
        """Whether the answer should stop."""
        return self.kind == "interruption"

    def make(self, say: Say) -> Sound:
        """Its sound."""
        louder = np.float32(10 ** (self.level_db / 20)) * self._make(say)
        return np.clip(louder, -1, 1)

    def _make(self, say: Say) -> Sound:
        if self.kind != "noise":
            return say(self.what, self.voice)
        if self.what == _BABBLE:
            return self._make_babble(say)
        sound = NOISES[self.what](np.random.default_rng(self.seed))
        return np.float32(_NOISE_PEAK) * sound

    def _make_babble(self, say: Say) -> Sound:
        sound = mix_babble([say(text, self.voice) for text in _BABBLED], _BABBLE_S)
        user = say(_BABBLED[self.seed % len(_BABBLED)], self.voice)
        loudness = np.sqrt(np.mean(user**2) / np.mean(sound**2))
        return sound * np.float32(loudness * 10 ** (_BABBLE_DB / 20))


def _combine(
    voices: Sequence[str],
    interruptions: Sequence[str],
    backchannels: Sequence[str],
    noises: Sequence[tuple[str, int]],
) -> tuple[InterruptionCase, ...]:
    stopping = [InterruptionCase("interruption", *one) for one in product(interruptions, voices)]
    passing = [InterruptionCase("backchannel", *one) for one in product(backchannels, voices)]
    heard = [
        InterruptionCase("noise", noise, voices[number % len(voices)], seed)
        for number, (noise, seed) in enumerate(noises)
    ]
    return (*stopping, *passing, *heard)


TUNED = _combine(
    ("quartet/clara", "solo/ben"),
    (
        "Wait, stop.",
        "No, I meant tomorrow.",
        "Hang on a second.",
        "What about Friday?",
        "Stop.",
        "Sorry, can you repeat that?",
        "How much does it cost?",
        "Actually, never mind.",
        "That is not what I asked.",
        "Tell me about the other one.",
        "Let me think about it.",
        "Make it two, please.",
    ),
    (
        "Mm-hm.",
        "Uh-huh.",
        "Yeah.",
        "Right.",
        "Okay.",
        "I see.",
        "Mhm, okay.",
        "Yes.",
        "Sure.",
        "Oh, nice.",
        "Got it.",
        "Ahem.",
    ),
    (
        *((noise, seed) for noise in ("cough", "knocks", "breath") for seed in range(3)),
        ("typing", 0),
        *((_BABBLE, seed) for seed in range(2)),
    ),
)
HELD_OUT = _combine(
    ("quartet/ewan", "solo/ruby"),
    (
        "Hold on, go back.",
        "But why is that?",
        "I wanted the blue one.",
        "Can we start again?",
        "Please be quiet.",
        "Where did you find that?",
    ),
    ("Mmm.", "Yep.", "Alright.", "Oh, really?", "That makes sense.", "Hm, interesting."),
    (("cough", 11), ("cough", 12), ("knocks", 11), ("breath", 11), ("typing", 11), (_BABBLE, 3)),
)


def _combine_wide(
    voices: Sequence[str],
    interruptions: Sequence[str],
    backchannels: Sequence[str],
    first_seed: int,
) -> tuple[InterruptionCase, ...]:
    texts: dict[Kind, Sequence[str]] = {
        "interruption": interruptions,
        "backchannel": backchannels,
    }
    said = [(kind, *one) for kind in texts for one in product(texts[kind], voices)]
    levels = len(_LEVELS_DB)
    # Moved by one for each text: each voice says something at each level.
    spoken = [
        InterruptionCase(*one, level_db=_LEVELS_DB[(number + number // len(voices)) % levels])
        for number, one in enumerate(said)
    ]
    noises = [
        InterruptionCase("noise", noise, voices[seed % len(voices)], first_seed + seed, level)
        for noise in (*NOISES, _BABBLE)
        for level in (_BABBLE_LEVELS_DB if noise == _BABBLE else _NOISE_LEVELS_DB)
        for seed in range(3)
    ]
    return (*spoken, *noises)


WIDE = _combine_wide(
    ("hibari/heart", "quartet/ruby", f"{ESPEAK}/en-us"),
    (
        "Wait.",
        "No.",
        "Stop it.",
        "Hey.",
        "Pause.",
        "Excuse me.",
        "Enough.",
        "Could you say that more slowly?",
        "Who told you that?",
        "That's the wrong address.",
        "Skip to the end, please.",
        "I need to leave in five minutes.",
        "Let's talk about the weather instead.",
        "Do they deliver on Sundays?",
        "Turn the volume down, please.",
        "My mother is calling me.",
        "Give me the short version.",
        "When does the market open?",
        "I already know this part.",
        "Hold that thought for a moment.",
    ),
    (
        "Mm.",
        "Uh-huh, yeah.",
        "Yep, yep.",
        "Ah, okay.",
        "Oh wow.",
        "Exactly.",
        "Gotcha.",
        "Aha.",
        "Huh.",
        "Fair point.",
        "Good to know.",
        "True, true.",
        "Amazing.",
        "Of course.",
        "Right, right, right.",
        "Oh, cool.",
        "Makes sense.",
        "Oh dear.",
        "Mm-hm, mm-hm.",
        "Great, great.",
    ),
    first_seed=20,
)
UNSEEN = _combine_wide(
    ("quartet/ewan", "hibari/heart", "solo/ben"),
    (
        "Stop please.",
        "No thanks.",
        "Wait a second.",
        "Sorry, no.",
        "Why is that?",
        "Say it again.",
        "Not today.",
        "Which bus goes downtown?",
        "Turn the lights off.",
        "I meant the other one.",
        "Can you speak louder?",
        "Let me call you back.",
        "Is there a cheaper one?",
        "Add milk to my list.",
        "My train leaves soon.",
        "Tell me about the garden.",
        "How long does it take?",
        "Please start from the top.",
        "The water is boiling.",
        "Do it tomorrow.",
    ),
    (
        "Mm, right.",
        "Uh-huh, I see.",
        "Yeah, yeah, okay.",
        "Oh, nice one.",
        "Right on.",
        "Ah, yes.",
        "Oh, fantastic.",
        "Wow, nice.",
        "Yep, okay.",
        "Yes, I know.",
        "Hm, sure.",
        "Haha, nice.",
        "Of course, yes.",
        "Okay, sounds good.",
        "Oh, beautiful.",
        "Quite true.",
        "Ah, lovely.",
        "So good.",
        "Oh, okay, right.",
        "Great, thanks.",
    ),
    first_seed=300,
)
CASE_SETS = {"tuned": TUNED, "held-out": HELD_OUT, "wide": WIDE, "unseen": UNSEEN}
