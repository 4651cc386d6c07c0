"""What answers the user of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cantata.api.realtime.conversation import Item
from cantata.api.realtime.refusals import NoResponses
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.session_settings import SessionSettings
from cantata.api.schemas import VoiceName


class SessionResponder(Protocol):
    """Answers one session, one answer at a time."""

    @property
    def name(self) -> str: ...

    @property
    def takes_audio(self) -> bool:
        """Whether it hears sound itself; others get the words."""
        ...

    @property
    def speaks(self) -> bool:
        """Whether it can answer aloud."""
        ...

    @property
    def default_voice(self) -> str | None:
        """The default voice; None if it has none."""
        ...

    def check(self, settings: SessionSettings, param: str) -> None:
        """Raises InvalidRequest for settings that the responder cannot follow.

        Args:
            settings: valid ones.
            param: the message's field, for the error.
        """
        ...

    async def get_voice(self, asked: VoiceName | None) -> str | None:
        """The id of a voice by any of its names. Raises InvalidRequest: it has no such voice."""
        ...

    async def answer(self, reply: Reply, items: Sequence[Item]) -> None:
        """Answer these items: send text and sound, and return once all has been sent. Cancelling
        ends the work everywhere. Raises CantataError: it cannot be finished."""
        ...

    def stop_audio(self) -> None:
        """Drop at once what has not been sent of the answer in progress."""
        ...


class TranscriptionOnlyResponder:
    """Implements `SessionResponder`."""

    takes_audio = False
    speaks = False
    default_voice = None

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, settings: SessionSettings, param: str) -> None:
        """Accepts all settings: those of answers have no effect."""

    async def get_voice(self, asked: VoiceName | None) -> None:
        """None: it has no voice."""

    async def answer(self, reply: Reply, items: Sequence[Item]) -> None:
        """Refuses. Raises NoResponses: always."""
        raise NoResponses

    def stop_audio(self) -> None:
        """There is none."""
