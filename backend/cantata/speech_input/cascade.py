"""The recogniser and the chat that a server's spoken conversations share."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

from cantata.contract.data.errors import NotInstalled
from cantata.speech_input.chat import Chat
from cantata.speech_input.responder import Responder
from cantata.speech_input.semantic_end import PATIENCE, Eagerness, SemanticEnd
from cantata.speech_input.settings import RealtimeSettings
from cantata.speech_input.smart_turn import EXTRA, SmartTurn, weights
from cantata.speech_input.transcription import Transcriber
from cantata.speech_input.turns import TurnDetector, TurnEnd
from cantata.speech_input.vad import SileroJudge, load_weights

_FOR_TURNS = ("onnxruntime", "silero_vad")
_FOR_WORDS = ("pocketsphinx",)


class Cascade:
    """Created with the app. Its parts start with the first session that needs them."""

    def __init__(self, settings: RealtimeSettings) -> None:
        self.settings = settings
        self._transcriber: Transcriber | None = None
        self._chat: Chat | None = None
        self._smart_turn: SmartTurn | None = None

    async def prepare(self, *, words: bool) -> None:
        """Load what the first session needs, while other clients are served.

        Args:
            words: whether it needs the words of what it hears.

        Raises:
            NotInstalled: names what is missing.
        """
        own_words = words and self.settings.transcription is None
        _check_installed(_FOR_TURNS + _FOR_WORDS if own_words else _FOR_TURNS)
        await asyncio.to_thread(load_weights)

    async def prepare_semantic(self) -> None:
        """Load what `semantic_end` needs.

        Raises:
            NotInstalled: names the extra.
        """
        path = weights()
        if path is None:
            raise NotInstalled(
                f"semantic_vad needs the model Smart Turn: pip install 'cantata[{EXTRA}]'"
            )
        if self._smart_turn is None:
            loaded = await asyncio.to_thread(SmartTurn, path)
            # Another session may have been faster.
            self._smart_turn = self._smart_turn or loaded

    @property
    def transcriber(self) -> Transcriber:
        """The recogniser of words.

        Raises:
            NotInstalled: names what is missing.
        """
        if self._transcriber is None:
            self._transcriber = self._new_transcriber()
        return self._transcriber

    @property
    def chat(self) -> Chat:
        """The chat that answers."""
        if self._chat is None:
            self._chat = self._new_chat()
        return self._chat

    def detector(self, threshold: float, end: TurnEnd) -> TurnDetector:
        """A turn detector for one stream of sound."""
        return TurnDetector(SileroJudge(), threshold, end, self.settings.max_sound_s)

    def semantic_end(self, eagerness: Eagerness) -> TurnEnd:
        """A semantic end of turns for one stream of sound; needs `prepare_semantic`."""
        assert self._smart_turn is not None
        return SemanticEnd(self._smart_turn.finished, PATIENCE[eagerness])

    async def close(self) -> None:
        """End what was started."""
        for part in (self._transcriber, self._chat, self._smart_turn):
            if part is not None:
                await part.close()
        self._transcriber = self._chat = self._smart_turn = None

    # The server starts without what no session has asked for.

    def _new_transcriber(self) -> Transcriber:
        if self.settings.transcription is None:
            _check_installed(_FOR_WORDS)
            from cantata.speech_input.sphinx import SphinxTranscriber

            return SphinxTranscriber()
        from cantata.speech_input.transcription_endpoint import TranscriptionEndpoint

        return TranscriptionEndpoint(self.settings.transcription, self.settings.answer_timeout_s)

    def _new_chat(self) -> Chat:
        if self.settings.chat is None:
            return Responder()
        from cantata.speech_input.chat_endpoint import ChatEndpoint

        return ChatEndpoint(self.settings.chat, self.settings.answer_timeout_s)


def _check_installed(packages: tuple[str, ...]) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise NotInstalled(
            f"spoken conversations need {', '.join(missing)}: pip install 'cantata[realtime]'"
        )
