"""Whom the user of a session talks with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cantata.api.realtime.conversation import Item
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.session import SessionSettings
from cantata.api.schemas import VoiceName


class Partner(Protocol):
    """Answers one session, one answer at a time."""

    @property
    def name(self) -> str:
        """Of the model, as clients know it."""
        ...

    @property
    def hears(self) -> bool:
        """It follows sound itself; others follow its words."""
        ...

    @property
    def speaks(self) -> bool:
        """It can answer aloud."""
        ...

    @property
    def default_voice(self) -> str | None:
        """None: it has none."""
        ...

    def check(self, settings: SessionSettings, param: str) -> None:
        """Raises InvalidRequest for settings that it cannot follow.

        Args:
            settings: valid ones.
            param: the message's field, for the error.
        """
        ...

    async def voice(self, asked: VoiceName | None) -> str | None:
        """The id of a voice by any of its names.

        Raises:
            InvalidRequest: it has no such voice.
        """
        ...

    async def answer(self, reply: Reply, items: Sequence[Item]) -> None:
        """Answer these items: send the text and the sound, and return when all has been sent. A
        cancellation ends the work everywhere.

        Raises:
            CantataError: it cannot be finished.
        """
        ...

    def hush(self) -> None:
        """Drop what has not been sent of the answer in progress, at once."""
        ...
