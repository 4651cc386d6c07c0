"""Finds a voice by any of its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cantata.contract.data.errors import ConfigError, VoiceNotFound
from cantata.contract.data.request import Voice


def with_aliases(
    voices: Sequence[Voice], aliases: Mapping[str, str], model: str
) -> tuple[Voice, ...]:
    """The voices with more names.

    Args:
        voices: the model's, the default first.
        aliases: alias -> any name of one of them.
        model: named in the error.

    Raises:
        ConfigError: an alias for a voice that there is not, or that already names another.
    """
    if not aliases:
        return tuple(voices)
    more: dict[str, list[str]] = {voice.id: [] for voice in voices}
    for alias, name in aliases.items():
        try:
            target = find_voice(voices, name, model)
        except VoiceNotFound as error:
            raise ConfigError(f"voice_aliases: {alias!r}: {error}") from None
        existing = next((voice for voice in voices if _is_called(voice, alias)), target)
        if existing.id != target.id:
            raise ConfigError(f"voice_aliases: {alias!r} already names voice {existing.id!r}")
        more[target.id].append(alias)
    return tuple(replace(voice, aliases=(*voice.aliases, *more[voice.id])) for voice in voices)


def _is_called(voice: Voice, name: str) -> bool:
    names = (voice.id, voice.name, *voice.aliases)
    return name.casefold() in {one.casefold() for one in names}


def find_voice(
    voices: Sequence[Voice], name: str | None, model: str, *, blends: bool = False
) -> Voice:
    """Look a voice up by id, name or alias; None is the default.

    Args:
        voices: the model's, the default first.
        name: in any case.
        model: named in the error.
        blends: the name may be a mixture (`Capabilities.voice_blends`), whose id has those of the
            voices in it.

    Raises:
        VoiceNotFound: lists the valid ids.
    """
    if name is None:
        return voices[0]
    for voice in voices:
        if _is_called(voice, name):
            return voice
    if blends and ("+" in name or "(" in name):
        parts = (part.partition("(") for part in name.split("+"))
        mixed = (
            find_voice(voices, part.strip(), model).id + bracket + weight
            for part, bracket, weight in parts
        )
        return Voice("+".join(mixed), name)
    valid = ", ".join(voice.id for voice in voices)
    raise VoiceNotFound(f"model {model!r} has no voice {name!r}; voices: {valid}", "voice")
