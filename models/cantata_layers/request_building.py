"""What request builders share: OpenAI's voice names, the check for a text without words, and a
recording to warm up with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import ReferenceAudio, Voice

OPENAI_VOICES = (
    *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
    *("marin", "nova", "onyx", "sage", "shimmer", "verse"),
)
_FEMALE = ("alloy", "coral", "marin", "nova", "sage", "shimmer", "fable")
_MALE = ("ash", "ballad", "cedar", "echo", "onyx", "verse")


def list_aliases(index: int, voices: int) -> tuple[str, ...]:
    """OpenAI's names for one of a model's voices: each name belongs to one voice."""
    return OPENAI_VOICES[index::voices]


def alias_by_gender(voices: Sequence[Voice]) -> tuple[Voice, ...]:
    """The voices, with OpenAI's names dealt in turn to those of the same gender."""
    aliases: dict[str, list[str]] = {voice.id: [] for voice in voices}
    for gender, names in (("female", _FEMALE), ("male", _MALE)):
        ids = [voice.id for voice in voices if voice.gender == gender]
        for index, name in enumerate(names if ids else ()):
            aliases[ids[index % len(ids)]].append(name)
    return tuple(replace(voice, aliases=tuple(aliases[voice.id])) for voice in voices)


def can_be_spoken(text: str) -> bool:
    """Whether a text has a letter or a digit, of whatever language."""
    return any(character.isalnum() for character in text)


def check_speakable(text: str) -> None:
    """Refuse a text of marks alone: a model would say anything. Raises InvalidRequest: names the
    field `input`."""
    if not can_be_spoken(text):
        raise InvalidRequest("the text holds nothing that can be spoken", "input")


def second_of_noise(
    sample_rate: int, channels: int = 1, transcript: str | None = None
) -> ReferenceAudio:
    """Return quiet noise, the same in every call. `sample_rate`: Hz."""
    noise = np.random.default_rng(0).normal(0, 0.1, (sample_rate, channels)).astype(np.float32)
    return ReferenceAudio(noise, sample_rate, transcript)
