"""What a model can do beyond speaking a text in one of its voices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OptionSchemas = Mapping[str, Mapping[str, Any]]
"""Name of a request field -> JSON Schema of its value, with the default if the model has one."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities in a plug-in. The api rejects or ignores what a model does not support."""

    instructions: bool = False
    """The model follows `SpeechRequest.instructions`."""
    references: bool = False
    """The model follows `SpeechRequest.reference`, a recording of any speaker."""
    max_references: int = 1
    """Most recordings that one request may have, one for each speaker of its text."""
    languages: tuple[str, ...] = ()
    """BCP 47 tags of the languages that it speaks. Empty: unknown."""
    voice_blends: bool = False
    """A request's voice may be a mixture of voices, `a+b` or with weights `a(2)+b(1)`. Its builder
    gets the mixture with the voices' own ids."""
    open_text: bool = False
    """The model can speak a text whose end has not arrived yet; its builder is an
    `OpenRequestBuilder`."""
    pauses: bool = False
    """The model reads `[pause 1.5s]` inside a text itself. For other models, the text is cut
    there."""
    phones: bool = False
    """The model reads phones instead of a word, in double brackets: `[[kæt]]`."""
    inflections: bool = False
    """The model makes words stand out: its builder follows `SpeechRequest.inflections`."""
    phonemizes: bool = False
    """The model says which phones it reads a text as; its builder is a `PhonemizingBuilder`."""
    paces: tuple[float, float] = (1.0, 1.0)
    """Slowest and fastest `SpeechRequest.speed` that the model itself supports; its builder gets no
    other. Beyond them, the engine stretches the sound."""
    sample_rate: int | None = None
    """Hz of its sound, if that is known before its stages run: the model is then listed while it
    loads. Such sound is mono."""
    speaker_tag: str = ""
    """Marks the beginning of a speaker's turn in a text, with `{n}` for the speaker's number from
    0. Empty: a text has one speaker."""
    options: OptionSchemas = field(default_factory=dict)
    """Request fields of the model's own, beyond those of `SpeechRequest`."""

    @property
    def spoken_languages(self) -> tuple[str, ...]:
        """Tags of the languages that a request may choose, by the option `language`."""
        return self.languages if "language" in self.options else ()

    @property
    def language(self) -> str:
        """BCP 47, of the words that a number becomes: the model's first, or English."""
        return self.languages[0] if self.languages else "en"

    def pace(self, speed: float) -> float:
        """The model's own pace that is nearest to this speed."""
        slowest, fastest = self.paces
        return min(max(speed, slowest), fastest)
