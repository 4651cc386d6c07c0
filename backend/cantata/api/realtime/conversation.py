"""The items of a conversation, and the messages that an answer follows from."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from cantata.api.realtime.refusals import ItemExists, NoSuchItem
from cantata.api.realtime.server_events import ContentObject, InputAudioObject, ItemObject
from cantata.speech_input.chat import UNINTELLIGIBLE, ChatCall, ChatMessage, Role
from cantata.speech_input.sound import HEARD_RATE, Heard

CHARACTERS_PER_S = 15.0
"""Rough length of speech, in characters with spaces per second."""
ROOT = "root"
"""The place before the first item."""


@dataclass(slots=True)
class Content:
    """One part of a message."""

    type: str
    text: str = ""
    """The text that was written, or said as far as it is known."""
    words: asyncio.Future[str] | None = None
    """The words of the user's sound, while they are being transcribed."""
    sound: Heard | None = None
    """The user's sound, if the model hears it itself."""
    meaning: str | None = None
    """The text that an answer follows from, where it differs from `text`."""

    def settle(self) -> None:
        """Take over the words, once they are known."""
        words = self.words
        if words is None or not words.done() or words.cancelled() or words.exception() is not None:
            return
        self.text, self.words = words.result(), None

    @property
    def audio(self) -> bool:
        """Whether the part is sound, so that its text is a transcript."""
        return self.type.endswith("audio")

    def to_object(self) -> ContentObject:
        self.settle()
        if self.type == "input_audio":
            return InputAudioObject(transcript=None if self.words else self.text)
        if self.audio:
            return ContentObject(type=self.type, transcript=self.text)
        return ContentObject(type=self.type, text=self.text)


@dataclass(slots=True)
class PlayoutTimes:
    sound_s: float = 0.0
    """Seconds of sound sent so far."""
    ends_s: list[float] = field(default_factory=list)
    """When each word ends, in seconds, ascending."""
    text_ends: list[int] = field(default_factory=list)
    """Where each of these words ends in the answer's text."""
    whole: bool = False
    """Whether all of the text was spoken."""
    speed: float = 1.0

    def truncate_text(self, text: str, until_s: float) -> str:
        """Cut the answer's text where it was heard to.

        Without word times it is estimated, in whole words: as large a part of the text as of the
        sound or, if more text was written than spoken, at a usual pace.
        """
        if self.ends_s:
            words = bisect_right(self.ends_s, until_s)
            return text[: self.text_ends[words - 1]] if words else ""
        pace = CHARACTERS_PER_S * self.speed
        if self.whole and self.sound_s:
            pace = len(text) / self.sound_s
        part = round(pace * until_s)
        return text if part >= len(text) else text[: text.rfind(" ", 0, part + 1) + 1].rstrip()


@dataclass(slots=True)
class FunctionCall:
    call_id: str
    name: str
    arguments: str = ""
    """JSON as it was written."""


@dataclass(slots=True)
class CallOutput:
    call_id: str
    output: str


@dataclass(slots=True, eq=False)
class Item:
    id: str
    role: Role
    content: list[Content]
    status: str = "completed"
    playout: PlayoutTimes | None = None
    """When the words of an answer are heard; None: it was not spoken."""
    call: FunctionCall | CallOutput | None = None
    """None: it is a message."""

    @property
    def characters(self) -> int:
        return sum(len(part.text) for part in self.content)

    @property
    def sound_s(self) -> float:
        """Seconds of sound that are kept for it."""
        return sum(len(part.sound) for part in self.content if part.sound is not None) / HEARD_RATE

    def to_object(self) -> ItemObject:
        match self.call:
            case FunctionCall(call_id, name, arguments):
                return ItemObject(
                    id=self.id,
                    type="function_call",
                    status=self.status,
                    call_id=call_id,
                    name=name,
                    arguments=arguments,
                )
            case CallOutput(call_id, output):
                return ItemObject(
                    id=self.id,
                    type="function_call_output",
                    status=self.status,
                    call_id=call_id,
                    output=output,
                )
        parts = [part.to_object() for part in self.content]
        return ItemObject(id=self.id, status=self.status, role=self.role, content=parts)

    def to_chat_message(self) -> ChatMessage:
        """Build the message for the model; sound without words is described as such."""
        match self.call:
            case FunctionCall(call_id, name, arguments):
                return ChatMessage("assistant", "", (ChatCall(call_id, name, arguments),))
            case CallOutput(call_id, output):
                return ChatMessage("tool", output, call_id=call_id)
        texts = []
        for part in self.content:
            part.settle()
            meant = part.meaning or part.text
            texts.append(
                UNINTELLIGIBLE if part.type == "input_audio" and not meant.strip() else meant
            )
        return ChatMessage(self.role, "\n".join(text for text in texts if text))


class Conversation:
    """The items of a conversation, in order.

    Args:
        max_items: beyond which the oldest one goes.
        max_sound_s: the same for the sound that is kept of all of them.
    """

    def __init__(self, max_items: int, max_sound_s: float) -> None:
        self._max_items = max_items
        self._max_sound_s = max_sound_s
        self._items: list[Item] = []

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(self._items)

    @property
    def last_id(self) -> str | None:
        return self._items[-1].id if self._items else None

    def has_call(self, call_id: str) -> bool:
        calls = (item.call for item in self._items)
        return any(isinstance(one, FunctionCall) and one.call_id == call_id for one in calls)

    def find_previous_id(self, item_id: str) -> str | None:
        """Find the id of the item before this one; None if it is the first, or gone."""
        ids = [item.id for item in self._items]
        place = ids.index(item_id) if item_id in ids else 0
        return ids[place - 1] if place else None

    def get(self, item_id: str) -> Item:
        """The item of this id. Raises NoSuchItem: there is none."""
        for item in self._items:
            if item.id == item_id:
                return item
        raise NoSuchItem(item_id)

    def add(self, item: Item, after: str | None = None) -> str | None:
        """Insert an item.

        Args:
            item: with an id that no other has.
            after: an item's id, `ROOT` or, for the end, None.

        Returns:
            The id of the item before it.

        Raises:
            ItemExists: the id is taken.
            NoSuchItem: there is no item to put it after.
        """
        if any(one.id == item.id for one in self._items):
            raise ItemExists(f"the conversation already has an item {item.id!r}", "item.id")
        place = len(self._items)
        if after == ROOT:
            place = 0
        elif after is not None:
            ids = [one.id for one in self._items]
            if after not in ids:
                raise NoSuchItem(after, "previous_item_id")
            place = ids.index(after) + 1
        self._items.insert(place, item)
        return self._items[place - 1].id if place else None

    def remove(self, item_id: str) -> None:
        """Remove an item; raises as `get` does."""
        self._items.remove(self.get(item_id))

    def shorten(self) -> Iterable[str]:
        """Drop the oldest items beyond the limits; returns their ids."""
        extra = max(0, len(self._items) - self._max_items)
        left_s = sum(item.sound_s for item in self._items[extra:])
        while left_s > self._max_sound_s:
            left_s -= self._items[extra].sound_s
            extra += 1
        dropped, self._items = self._items[:extra], self._items[extra:]
        return [item.id for item in dropped]
