"""What a model can do beyond speaking a text in one of its voices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OptionSchemas = Mapping[str, Mapping[str, Any]]
"""Name of a request field -> JSON Schema of its value, with the default if the model has one."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Part of a plug-in; the api rejects or ignores what a model does not support."""

    instructions: bool = False
    """Follows `SpeechRequest.instructions`."""
    references: bool = False
    """Follows `SpeechRequest.reference`, a recording of any speaker."""
    max_references: int = 1
    """Recordings that one request may follow, one for each speaker of its text."""
    languages: tuple[str, ...] = ()
    """BCP 47 tags of what it speaks; empty: unknown."""
    open_text: bool = False
    """Speaks a text whose end has not arrived yet; its builder is an `OpenRequestBuilder`."""
    pauses: bool = False
    """Reads `[pause 1.5s]` inside a text by itself; else the text is cut there."""
    paces: tuple[float, float] = (1.0, 1.0)
    """The slowest and the fastest `SpeechRequest.speed` that the model itself
    supports; its builder gets no other. Beyond them, the engine stretches the sound."""
    speaker_tag: str = ""
    """What begins a speaker's turn in a text of several speakers, with `{n}` for the speaker's
    number from 0; empty: a text has one speaker."""
    options: OptionSchemas = field(default_factory=dict)
    """Request fields that it accepts beyond those of `SpeechRequest`."""

    def pace(self, speed: float) -> float:
        """The model's own pace that is nearest to this speed."""
        slowest, fastest = self.paces
        return min(max(speed, slowest), fastest)
