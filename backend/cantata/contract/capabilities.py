"""What a model can do beyond speaking a text in one of its voices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Part of a plug-in; what a model cannot do is refused or ignored by the api."""

    instructions: bool = False
    """Follows `SpeechRequest.instructions`."""
    references: bool = False
    """Follows `SpeechRequest.reference`, a recording of any speaker."""
    languages: tuple[str, ...] = ()
    """BCP 47 tags of what it speaks; empty: unknown."""
    open_text: bool = False
    """Speaks a text whose end has not arrived yet; its builder is an `OpenRequestBuilder`."""
    options: tuple[str, ...] = ()
    """Fields of a request that it understands beyond those of `SpeechRequest`."""
