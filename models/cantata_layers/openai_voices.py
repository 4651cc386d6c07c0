"""OpenAI's voice names, as aliases for clients that accept no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cantata.contract.data.request import Voice

OPENAI_VOICES = (
    *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
    *("marin", "nova", "onyx", "sage", "shimmer", "verse"),
)
_FEMALE = ("alloy", "coral", "marin", "nova", "sage", "shimmer", "fable")
_MALE = ("ash", "ballad", "cedar", "echo", "onyx", "verse")


def list_aliases(index: int, voices: int) -> tuple[str, ...]:
    """Those of one of a model's voices: each name goes to one of them.

    Args:
        index: of the voice.
        voices: that the model has.
    """
    return OPENAI_VOICES[index::voices]


def alias_by_gender(voices: Sequence[Voice]) -> tuple[Voice, ...]:
    """The voices, with OpenAI's names dealt in turn to those of the same gender."""
    aliases: dict[str, list[str]] = {voice.id: [] for voice in voices}
    for gender, names in (("female", _FEMALE), ("male", _MALE)):
        ids = [voice.id for voice in voices if voice.gender == gender]
        for index, name in enumerate(names if ids else ()):
            aliases[ids[index % len(ids)]].append(name)
    return tuple(replace(voice, aliases=tuple(aliases[voice.id])) for voice in voices)
