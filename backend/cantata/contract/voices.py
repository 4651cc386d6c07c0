"""Finds a voice by any of its names."""

from __future__ import annotations

from collections.abc import Sequence

from cantata.contract.data.errors import VoiceNotFound
from cantata.contract.data.request import Voice


def find_voice(voices: Sequence[Voice], name: str | None, model: str) -> Voice:
    """Look a voice up by id, name or alias; None is the default.

    Args:
        voices: the model's, the default first.
        name: in any case.
        model: named in the error.

    Raises:
        VoiceNotFound: lists the valid ids.
    """
    if name is None:
        return voices[0]
    wanted = name.casefold()
    for voice in voices:
        if wanted in {n.casefold() for n in (voice.id, voice.name, *voice.aliases)}:
            return voice
    valid = ", ".join(voice.id for voice in voices)
    raise VoiceNotFound(f"model {model!r} has no voice {name!r}; voices: {valid}", "voice")
