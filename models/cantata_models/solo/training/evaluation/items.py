"""What is to be said: by whom, at which speed, and after which recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cantata_models.solo.training.speakers import HELD_OUT_PSEUDO
from cantata_models.solo.training.text import HeldOut, read_heldout

SPEEDS = (0.5, 0.7, 1.4, 2.0)
SPEED_SENTENCES = 2
"""Of each group but the long one, at each speed."""
SHORT_SENTENCES = {"long": 1}
"""Of a group in the short form; of any other `SHORT_USUAL`."""
SHORT_USUAL = 3
PROMPT_GROUPS = ("plain", "numbers", "names", "questions")
"""A reference is followed in the first sentence of each."""
REFERENCE_WORDS = range(15, 30)
"""A reference of so many words lasts 4 to 10 seconds."""


class UnknownChoice(ValueError):
    """A part of the evaluation that cannot be chosen."""


@dataclass(frozen=True, slots=True)
class Item:
    """One sentence in one voice."""

    speaker: str
    """A stock voice, or a held-out pseudo-speaker."""
    group: str
    text: str
    """In spoken form."""
    speed: float = 1.0
    reference: str = ""
    """The speaker's own reading of this text is what the voice follows; empty for stock voices."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of the evaluation; the default is all of it."""

    voices: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    short: bool = False

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.voices or self.groups or self.short)


def choose(wanted: Sequence[str], offered: Sequence[str], what: str) -> tuple[str, ...]:
    """Returns the wanted names, all offered ones for none.

    Raises:
        UnknownChoice: a name that is not offered.
    """
    unknown = [name for name in wanted if name not in offered]
    if unknown:
        raise UnknownChoice(f"unknown {what} {unknown[0]!r}; there are {', '.join(offered)}")
    return tuple(wanted or offered)


def first_sentences(group: str, count: int) -> list[HeldOut]:
    """Returns the first held-out sentences of a group."""
    return [item for item in read_heldout() if item.group == group][:count]


def short_sentences() -> list[HeldOut]:
    """Returns what the short form says."""
    groups = dict.fromkeys(item.group for item in read_heldout())
    return [
        item
        for group in groups
        for item in first_sentences(group, SHORT_SENTENCES.get(group, SHORT_USUAL))
    ]


def prompt_items() -> list[Item]:
    """Returns the sentences that follow a reference, for every held-out pseudo-speaker."""
    references = [
        item.text
        for item in read_heldout()
        if item.group == "plain" and len(item.text.split()) in REFERENCE_WORDS
    ]
    said = [item for group in PROMPT_GROUPS for item in first_sentences(group, 1)]
    return [
        Item(speaker.name, item.group, item.text, reference=references[number % len(references)])
        for number, speaker in enumerate(HELD_OUT_PSEUDO)
        for item in said
    ]


def plan_items(offered_voices: Sequence[str], selection: Selection) -> list[Item]:
    """Returns every sentence to say; speeds and references only where no group is chosen.

    Raises:
        UnknownChoice: an unknown voice or group.
    """
    offered_groups = list(dict.fromkeys(item.group for item in read_heldout()))
    voices = choose(selection.voices, offered_voices, "voice")
    groups = choose(selection.groups, offered_groups, "group")
    sentences = short_sentences() if selection.short else read_heldout()
    items = [
        Item(voice, item.group, item.text)
        for voice in voices
        for item in sentences
        if item.group in groups
    ]
    if selection.short or selection.groups:
        return items
    items += [
        Item(voice, item.group, item.text, speed)
        for voice in voices
        for speed in SPEEDS
        for group in offered_groups
        if group != "long"
        for item in first_sentences(group, SPEED_SENTENCES)
    ]
    return items if selection.voices else items + prompt_items()
