"""The tokens of a prompt in both layouts.

S2 has a chat: a system turn, with the recording's transcript and codes if there is one, then the
text as a user's turn. S1 has no template. Segments are tokenized one by one, as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cantata_models.fish_speech.text.special_tokens import (
    IM_END,
    IM_START,
    INTERLEAVE,
    SPEAKER,
    SPEAKER_TAG,
    VOICE,
    Special,
)
from cantata_models.fish_speech.text.tokenizers import TextTokenizer

TASK = "convert the provided text to speech"
REFERENCE_TASK = f"{TASK} reference to the following:\n\nText:\n"
SPEECH = "\n\nSpeech:\n"
FIRST_SPEAKER = SPEAKER.format(0)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Tokens, less those of a recording's codes."""

    tokens: tuple[int, ...]
    recording_at: int | None
    """In front of which token the codes stand; None: there are none."""


class PromptBuilder(Protocol):
    """Lays out prompts for one checkpoint."""

    def build(self, text: str, transcript: str | None) -> Prompt:
        """The prompt of a text, in the voice of a recording if there is a transcript of it."""
        ...


class S2Prompts:
    """S2's.

    Raises:
        ConfigError: (on construction) the tokenizer lacks a token of the template.
    """

    def __init__(self, tokenizer: TextTokenizer, special: Special) -> None:
        encode = self._encode = tokenizer.encode
        start, end = special.id_of(IM_START), special.id_of(IM_END)
        self._system = (start, *encode("system\n"))
        self._user = (start, *encode("user\n"))
        self._end = (end, *encode("\n"))
        self._reply = (start, *encode("assistant\n"), special.id_of(VOICE))

    def build(self, text: str, transcript: str | None) -> Prompt:
        """Return the prompt of a text."""
        system: tuple[int, ...] = self._system
        recording_at = None
        if transcript is None:
            system += self._encode(TASK)
        else:
            for part in (REFERENCE_TASK, with_speaker(transcript), SPEECH):
                system += self._encode(part)
            recording_at = len(system)
        user = (*self._user, *self._encode(text), *self._end)
        return Prompt((*system, *self._end, *user, *self._reply), recording_at)


class S1Prompts:
    """S1's.

    Raises:
        ConfigError: (on construction) the tokenizer lacks a token of the template.
    """

    def __init__(self, tokenizer: TextTokenizer, special: Special) -> None:
        self._encode = tokenizer.encode
        self._begin = (special.id_of(INTERLEAVE),)
        self._end = (special.id_of(IM_END),)
        known = special.ids.get(FIRST_SPEAKER)
        self._speaker = tokenizer.encode(FIRST_SPEAKER) if known is None else (known,)

    def build(self, text: str, transcript: str | None) -> Prompt:
        """Return the prompt of a text."""
        tokens: tuple[int, ...] = self._begin
        recording_at = None
        if transcript is not None:
            tokens += self._speaker + self._encode(transcript)
            recording_at = len(tokens)
            tokens += self._end
        return Prompt(tokens + self._speaker + self._encode(text), recording_at)


def with_speaker(transcript: str) -> str:
    """Return a transcript with the tag of its speaker, which it may have already."""
    return transcript if SPEAKER_TAG.search(transcript) else f"{FIRST_SPEAKER}{transcript}"
