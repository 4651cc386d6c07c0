"""One answer: its state, and the events that tell of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cantata.api.realtime.conversation import Content, Item, PlayoutTimes
from cantata.api.realtime.reply_calls import Keep, ReplyCalls
from cantata.api.realtime.server_events import (
    AudioDoneEvent,
    ContentObject,
    ContentPartEvent,
    FailureObject,
    ItemEvent,
    ItemObject,
    OutputItemEvent,
    RateLimits,
    RealtimeResponse,
    RealtimeResponseEvent,
    RealtimeUsage,
    ServerEvent,
    StatusDetails,
    TextDeltaEvent,
    TextDone,
    TokenDetails,
    TranscriptDone,
    new_id,
)
from cantata.api.realtime.session_settings import SessionSettings
from cantata.api.schemas import MILLISECONDS_PER_TOKEN
from cantata.speech_input.chat import ToolCallDelta


@dataclass(frozen=True, slots=True)
class ReplyEnding:
    status: str
    """`completed`, `cancelled`, `incomplete` or `failed`."""
    reason: str | None = None
    error: FailureObject | None = None

    @property
    def details(self) -> StatusDetails | None:
        """The ending as clients see it."""
        if self.status == "completed":
            return None
        return StatusDetails(type=self.status, reason=self.reason, error=self.error)


@dataclass(slots=True, eq=False)
class Reply:
    settings: SessionSettings
    voice: str | None
    """The voice as clients see it; None if there is none."""
    conversation_id: str | None
    """None: the answer is not kept in the conversation."""
    keep: Keep | None = None
    """Puts its items into the conversation; None as of `conversation_id`."""
    metadata: dict[str, str] | None = None
    id: str = field(default_factory=lambda: new_id("resp"))
    text: str = ""
    asked: int = 0
    """Input for the usage: characters, or tokens of a model that hears."""
    tokens: int | None = None
    """Tokens of its text; None: its characters are counted."""
    cut: bool = False
    """Whether the answer was cut at its longest allowed length."""
    audio_done: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    item: Item = field(init=False)
    calls: ReplyCalls = field(init=False)
    playout: PlayoutTimes = field(default_factory=PlayoutTimes)
    has_message: bool = False
    """Whether its message has begun. An answer that may call functions may have none."""

    def __post_init__(self) -> None:
        kind = "output_audio" if self.speaks else "output_text"
        self.playout.speed = self.settings.audio.output.speed
        playout = self.playout if self.speaks else None
        self.item = Item(new_id("item"), "assistant", [Content(kind)], "in_progress", playout)
        self.calls = ReplyCalls(self.id, self.keep)

    @property
    def speaks(self) -> bool:
        """Whether the answer is sound."""
        return self.settings.speaks

    @property
    def awaits_user(self) -> bool:
        """Whether it is the user's turn after it: the answer is whole, and calls nothing."""
        return self.item.status == "completed" and not self.calls.items

    def build_start_events(self) -> list[ServerEvent]:
        """Build the events of a new answer without any content."""
        message = [] if self.settings.offered else self.begin_message()
        return [
            RealtimeResponseEvent(
                type="response.created", response=self._build_object("in_progress")
            ),
            RateLimits(),
            *message,
        ]

    def begin_message(self) -> list[ServerEvent]:
        """Events of its message without any content; none if it has begun."""
        if self.has_message:
            return []
        self.has_message = True
        empty = self._build_item("in_progress", [])
        previous = None if self.keep is None else self.keep(self.item)
        kept = ItemEvent(type="conversation.item.added", item=empty, previous_item_id=previous)
        return [
            OutputItemEvent(type="response.output_item.added", response_id=self.id, item=empty),
            *([kept] if self.conversation_id else []),
            ContentPartEvent(
                type="response.content_part.added",
                response_id=self.id,
                item_id=self.item.id,
                part=self._build_part(""),
            ),
        ]

    def take_fitting(self, text: str, max_characters: int) -> str:
        """Take as much of this text as still fits into an item; cutting it ends the answer."""
        room = max_characters - len(self.text)
        self.cut = self.cut or len(text) > room
        return text[:room]

    def add_text(self, text: str) -> ServerEvent:
        """Add text, and build its event."""
        self.text += text
        self.item.content[0].text = self.text
        if self.speaks:
            kind: str = "response.output_audio_transcript.delta"
        else:
            kind = "response.output_text.delta"
        return TextDeltaEvent.model_validate(
            {"type": kind, "response_id": self.id, "item_id": self.item.id, "delta": text}
        )

    def take_call(self, piece: ToolCallDelta) -> list[ServerEvent]:
        """Events for more of a call."""
        return self.calls.take(piece, output_index=int(self.has_message))

    def build_end_events(
        self, ending: ReplyEnding, previous_item_id: str | None
    ) -> list[ServerEvent]:
        """Set the final state, and build the events of the end."""
        status = "completed" if ending.status == "completed" else "incomplete"
        self.item.status = status
        calls = self.calls.finish(status)
        begun = [] if self.calls.items else self.begin_message()
        message = self._finish_message(previous_item_id) if self.has_message else []
        output = [self.item.to_object()] if self.has_message else []
        output += [item.to_object() for item in self.calls.items]
        done = self._build_object(ending.status, ending, output)
        return [
            *begun,
            *message,
            *calls,
            RealtimeResponseEvent(type="response.done", response=done),
        ]

    def _finish_message(self, previous_item_id: str | None) -> list[ServerEvent]:
        whole = self.item.to_object()
        kept = ItemEvent(
            type="conversation.item.done", item=whole, previous_item_id=previous_item_id
        )
        return [
            *self._finish_contents(),
            ContentPartEvent(
                type="response.content_part.done",
                response_id=self.id,
                item_id=self.item.id,
                part=self._build_part(self.text),
            ),
            OutputItemEvent(type="response.output_item.done", response_id=self.id, item=whole),
            *([kept] if self.conversation_id else []),
        ]

    def _finish_contents(self) -> list[ServerEvent]:
        response_id, item_id = self.id, self.item.id
        if not self.speaks:
            return [TextDone(response_id=response_id, item_id=item_id, text=self.text)]
        return [
            AudioDoneEvent(response_id=response_id, item_id=item_id),
            TranscriptDone(response_id=response_id, item_id=item_id, transcript=self.text),
        ]

    def _build_part(self, text: str) -> ContentObject:
        if self.speaks:
            return ContentObject(type="audio", transcript=text)
        return ContentObject(type="text", text=text)

    def _build_item(self, status: str, content: list[ContentObject]) -> ItemObject:
        return ItemObject(id=self.item.id, status=status, role="assistant", content=content)

    def _build_object(
        self, status: str, ending: ReplyEnding | None = None, output: Sequence[ItemObject] = ()
    ) -> RealtimeResponse:
        sound = self.settings.audio.output
        audio = {"output": {"format": sound.format.model_dump(), "voice": self.voice}}
        return RealtimeResponse(
            id=self.id,
            status=status,
            status_details=ending.details if ending else None,
            output=list(output),
            conversation_id=self.conversation_id,
            output_modalities=list(self.settings.output_modalities),
            max_output_tokens=self.settings.max_output_tokens,
            audio=audio if self.speaks else {},
            usage=self._build_usage() if ending else None,
            metadata=self.metadata,
        )

    def _build_usage(self) -> RealtimeUsage:
        sound = math.ceil(self.playout.sound_s * 1000 / MILLISECONDS_PER_TOKEN)
        asked, text = self.asked, len(self.text) if self.tokens is None else self.tokens
        return RealtimeUsage(
            total_tokens=asked + text + sound,
            input_tokens=asked,
            output_tokens=text + sound,
            input_token_details=TokenDetails(text_tokens=asked, audio_tokens=0),
            output_token_details=TokenDetails(text_tokens=text, audio_tokens=sound),
        )
