"""The items to synthesize: sentence, voice, speed and reference recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cantata_models.solo.training.speakers import HELD_OUT_PSEUDO
from cantata_models.solo.training.text import HeldOut, read_heldout

SPEEDS = (0.5, 0.7, 1.4, 2.0)
SPEED_SENTENCES = 2
"""Sentences per speed from each group except the long one."""
SHORT_SENTENCES = {"long": 1}
"""Sentences per group in the short form; other groups have `SHORT_USUAL`."""
SHORT_USUAL = 3
PROMPT_GROUPS = ("plain", "numbers", "names", "questions")
"""The first sentence of each of these groups follows a reference."""
REFERENCE_WORDS = range(15, 30)
"""A reference with this many words lasts 4 to 10 seconds."""


class UnknownChoice(ValueError):
    """The chosen part of the evaluation does not exist."""


@dataclass(frozen=True, slots=True)
class EvaluatedSentence:
    """One sentence in one voice."""

    speaker: str
    """A stock voice or a held-out pseudo-speaker."""
    group: str
    text: str
    """In spoken form."""
    speed: float = 1.0
    reference: str = ""
    """The voice follows the speaker's own reading of this text. Empty for stock voices."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of the evaluation to run; all of it by default."""

    voices: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    short: bool = False

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.voices or self.groups or self.short)


def choose(wanted: Sequence[str], offered: Sequence[str], what: str) -> tuple[str, ...]:
    """Returns the wanted names, or all offered names if none are wanted.

    Raises:
        UnknownChoice: a name is not offered.
    """
    unknown = [name for name in wanted if name not in offered]
    if unknown:
        raise UnknownChoice(f"unknown {what} {unknown[0]!r}; there are {', '.join(offered)}")
    return tuple(wanted or offered)


def first_sentences(group: str, count: int) -> list[HeldOut]:
    return [item for item in read_heldout() if item.group == group][:count]


def short_sentences() -> list[HeldOut]:
    """Returns the sentences of the short form."""
    groups = dict.fromkeys(item.group for item in read_heldout())
    return [
        item
        for group in groups
        for item in first_sentences(group, SHORT_SENTENCES.get(group, SHORT_USUAL))
    ]


def prompt_items() -> list[EvaluatedSentence]:
    """Returns the sentences that follow a reference, for every held-out pseudo-speaker."""
    references = [
        item.text
        for item in read_heldout()
        if item.group == "plain" and len(item.text.split()) in REFERENCE_WORDS
    ]
    said = [item for group in PROMPT_GROUPS for item in first_sentences(group, 1)]
    return [
        EvaluatedSentence(
            speaker.name, item.group, item.text, reference=references[number % len(references)]
        )
        for number, speaker in enumerate(HELD_OUT_PSEUDO)
        for item in said
    ]


def plan_items(offered_voices: Sequence[str], selection: Selection) -> list[EvaluatedSentence]:
    """Returns every item. Includes speeds and references only if no group is chosen.

    Raises:
        UnknownChoice: an unknown voice or group.
    """
    offered_groups = list(dict.fromkeys(item.group for item in read_heldout()))
    voices = choose(selection.voices, offered_voices, "voice")
    groups = choose(selection.groups, offered_groups, "group")
    sentences = short_sentences() if selection.short else read_heldout()
    items = [
        EvaluatedSentence(voice, item.group, item.text)
        for voice in voices
        for item in sentences
        if item.group in groups
    ]
    if selection.short or selection.groups:
        return items
    items += [
        EvaluatedSentence(voice, item.group, item.text, speed)
        for voice in voices
        for speed in SPEEDS
        for group in offered_groups
        if group != "long"
        for item in first_sentences(group, SPEED_SENTENCES)
    ]
    return items if selection.voices else items + prompt_items()
