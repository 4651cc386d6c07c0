"""The other side of a session that only transcribes: it answers nothing."""

from __future__ import annotations

from collections.abc import Sequence

from cantata.api.realtime.conversation import Item
from cantata.api.realtime.refusals import NoResponses
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.session import SessionSettings
from cantata.api.schemas import VoiceName


class ListeningResponder:
    """Implements `SessionResponder`."""

    hears = False
    speaks = False
    default_voice = None

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, settings: SessionSettings, param: str) -> None:
        """Accepts all settings: those of answers have no effect."""

    async def voice(self, asked: VoiceName | None) -> None:
        """None: it has no voice."""

    async def answer(self, reply: Reply, items: Sequence[Item]) -> None:
        """Refuses.

        Raises:
            NoResponses: always.
        """
        raise NoResponses

    def stop_audio(self) -> None:
        """There is none."""
