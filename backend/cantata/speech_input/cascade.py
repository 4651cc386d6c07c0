"""What hears and answers, shared by a server's spoken conversations."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cantata.contract.data.errors import NotInstalled
from cantata.contract.transcription_service import TranscriptionModel
from cantata.speech_input.chat import Chat, Responder
from cantata.speech_input.echo import EchoAwareJudge, EchoFilter
from cantata.speech_input.model_transcriber import ModelTranscriber, RecognitionLoad
from cantata.speech_input.semantic_end import (
    EXTRA,
    PATIENCE,
    Eagerness,
    SemanticEnd,
    SmartTurn,
    weights,
)
from cantata.speech_input.settings import RealtimeSettings
from cantata.speech_input.transcription import Transcriber
from cantata.speech_input.turns import TurnDetector, TurnEnd
from cantata.speech_input.vad import SileroJudge, load_weights

if TYPE_CHECKING:
    from cantata.speech_input.endpoints import TranscriptionEndpoint


class Cascade:
    """Created with the app. Its parts start with the first session that needs them."""

    def __init__(self, settings: RealtimeSettings) -> None:
        self.settings = settings
        self._load = RecognitionLoad()
        self._endpoint: TranscriptionEndpoint | None = None
        self._chat: Chat | None = None
        self._smart_turn: SmartTurn | None = None

    async def prepare(self) -> None:
        """Load what the first session needs, while other clients are served. Raises NotInstalled:
        names what is missing."""
        await asyncio.to_thread(load_weights)

    async def prepare_semantic(self) -> None:
        """Load what `semantic_end` needs. Raises NotInstalled: names the extra."""
        path = weights()
        if path is None:
            raise NotInstalled(
                f"semantic_vad needs the model Smart Turn: pip install 'cantata[{EXTRA}]'"
            )
        if self._smart_turn is None:
            loaded = await asyncio.to_thread(SmartTurn, path)
            # Another session may have been faster.
            self._smart_turn = self._smart_turn or loaded

    def transcriber(self, model: TranscriptionModel | None) -> Transcriber:
        """What finds the words. `model`: of this server; None: the operator's endpoint, which there
        is."""
        if model is not None:
            return ModelTranscriber(model, self._load, SileroJudge)
        if self._endpoint is None:
            # The server starts without what no session has asked for.
            from cantata.speech_input.endpoints import TranscriptionEndpoint

            assert self.settings.transcription is not None
            limit_s = self.settings.answer_timeout_s
            self._endpoint = TranscriptionEndpoint(self.settings.transcription, limit_s)
        return self._endpoint

    @property
    def chat(self) -> Chat:
        if self._chat is None:
            self._chat = self._create_chat()
        return self._chat

    def detector(self, threshold: float, end: TurnEnd, echo: EchoFilter) -> TurnDetector:
        """A turn detector for one stream of sound, which does not hear its own answers."""
        judge = EchoAwareJudge(SileroJudge(), echo)
        return TurnDetector(judge, threshold, end, self.settings.max_sound_s)

    def semantic_end(self, eagerness: Eagerness) -> TurnEnd:
        """A semantic end of turns for one stream of sound; needs `prepare_semantic`."""
        assert self._smart_turn is not None
        return SemanticEnd(self._smart_turn.finished, PATIENCE[eagerness])

    async def close(self) -> None:
        for part in (self._endpoint, self._chat, self._smart_turn):
            if part is not None:
                await part.close()
        self._endpoint = self._chat = self._smart_turn = None

    def _create_chat(self) -> Chat:
        if self.settings.chat is None:
            return Responder()
        from cantata.speech_input.endpoints import ChatEndpoint

        return ChatEndpoint(self.settings.chat, self.settings.answer_timeout_s)
