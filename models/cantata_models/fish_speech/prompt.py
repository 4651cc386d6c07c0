"""The tokens of a prompt in both layouts.

S2 has a chat: a system turn, with the recordings' transcripts and codes if there are any, then the
text as a user's turn, behind those that were spoken before. S1 has no template. Segments are
tokenized one by one, as published.
"""

from __future__ import annotations

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True)
class Prompt:
    """Tokens, less those of any codes."""

    tokens: tuple[int, ...]
    recordings_at: tuple[int, ...]
    """In front of which token the codes of each recording stand."""
    spoken_at: int = 0
    """In front of which earlier turns stand."""


class PromptBuilder(Protocol):
    """Lays out prompts for one checkpoint."""

    def build(self, text: str, transcripts: Sequence[str]) -> Prompt:
        """The prompt of a text, in the voices of the recordings with these transcripts."""
        ...


class S2Prompts:
    """S2's.

    Raises:
        ConfigError: (on construction) the tokenizer lacks a token of the template.
    """

    def __init__(self, tokenizer: TextTokenizer, special: Special) -> None:
        encode = self._encode = tokenizer.encode
        start, end = special.get_id(IM_START), special.get_id(IM_END)
        self._system = (start, *encode("system\n"))
        self._user = (start, *encode("user\n"))
        self.end = (end, *encode("\n"))
        """Of every turn."""
        self._reply = (start, *encode("assistant\n"), special.get_id(VOICE))

    def build(self, text: str, transcripts: Sequence[str]) -> Prompt:
        system: tuple[int, ...] = self._system
        recordings_at: tuple[int, ...] = ()
        if not transcripts:
            system += self._encode(TASK)
        else:
            tagged = (with_speaker(text, number) for number, text in enumerate(transcripts))
            for part in (REFERENCE_TASK, "\n".join(tagged), SPEECH):
                system += self._encode(part)
            recordings_at = (len(system),) * len(transcripts)
        system += self.end
        return Prompt(system + self.turn(text), recordings_at, len(system))

    def turn(self, text: str) -> tuple[int, ...]:
        """Return a user's turn and the beginning of its reply."""
        return (*self._user, *self._encode(text), *self.end, *self._reply)


class S1Prompts:
    """S1's. All its recordings are of one speaker.

    Raises:
        ConfigError: (on construction) the tokenizer lacks a token of the template.
    """

    def __init__(self, tokenizer: TextTokenizer, special: Special) -> None:
        self._encode = tokenizer.encode
        self._begin = (special.get_id(INTERLEAVE),)
        self._end = (special.get_id(IM_END),)
        first = SPEAKER.format(0)
        known = special.ids.get(first)
        self._speaker = tokenizer.encode(first) if known is None else (known,)

    def build(self, text: str, transcripts: Sequence[str]) -> Prompt:
        tokens: tuple[int, ...] = self._begin
        recordings_at = []
        for transcript in transcripts:
            tokens += self._speaker + self._encode(transcript)
            recordings_at.append(len(tokens))
            tokens += self._end
        return Prompt(tokens + self._speaker + self._encode(text), tuple(recordings_at))


def with_speaker(transcript: str, number: int) -> str:
    """Return a transcript with the tag of its speaker, which it may have already."""
    tagged = SPEAKER_TAG.search(transcript)
    return transcript if tagged else f"{SPEAKER.format(number)}{transcript}"
