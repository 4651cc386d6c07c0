"""One utterance of the user: its sound, and its words while they are being transcribed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

import numpy as np

from cantata.api.context import ApiContext
from cantata.api.realtime.server_events import new_id
from cantata.api.realtime.session_settings import SessionSettings
from cantata.api.realtime.transcription_choice import build_options, find_transcription_model
from cantata.contract.data.errors import CantataError
from cantata.contract.data.transcripts import Transcript
from cantata.speech_input.agreed_words import AgreedWords, WordDelta
from cantata.speech_input.interruptions import expect_short_words
from cantata.speech_input.sound import Heard
from cantata.speech_input.transcription import HeardPiece

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Starts a task of the connection."""
OnDelta = Callable[[str, WordDelta], None]
"""Takes an item's id and more of its words."""
OnTranscript = Callable[[Transcript], None]
"""Takes the words so far of an utterance's present window."""
_OFTEN_S = 0.35
"""Seconds of sound from one transcript to the next, where somebody waits for the first words."""


class TranscriptionFeed:
    """One utterance, on its way to the model that hears it and to the recognizer."""

    def __init__(self, *, keeps_sound: bool) -> None:
        self.item_id = new_id("item")
        self.words: asyncio.Future[str] | None = None
        """None: nothing is transcribed."""
        self.transcript: Transcript | None = None
        self.bytes = 0
        """Bytes of its sound."""
        self._kept = bytearray() if keeps_sound else None
        # Bounded by the longest turn.
        self._waiting: asyncio.Queue[HeardPiece | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    @property
    def sound(self) -> Heard | None:
        """All of its sound, once it has ended; None if it is not kept."""
        return None if self._kept is None else np.frombuffer(bytes(self._kept), np.int16)

    def start_transcription(
        self,
        context: ApiContext,
        settings: SessionSettings,
        spawn: Spawn,
        on_delta: OnDelta | None,
        on_transcript: OnTranscript | None = None,
    ) -> None:
        """Begin to pass its sound on to the recognizer.

        Args:
            on_delta: is told of words as soon as they are certain.
            on_transcript: is told often of all words so far, certain or not.
        """
        self.words = asyncio.get_running_loop().create_future()
        self.words.add_done_callback(_read)
        self._task = spawn(self._transcribe(context, settings, self.words, on_delta, on_transcript))

    def append(self, sound: bytes, probability: float | None = None) -> None:
        """Add sound.

        Args:
            sound: s16le at `HEARD_RATE`.
            probability: of speech in it; None: nobody judged it.
        """
        if not sound:
            return
        self.bytes += len(sound)
        if self._kept is not None:
            self._kept += sound
        if self.words is not None:
            self._waiting.put_nowait(HeardPiece(np.frombuffer(sound, np.int16), probability))

    def end(self) -> None:
        self._waiting.put_nowait(None)

    def drop(self) -> None:
        """Stop transcribing it: nobody needs its words."""
        if self._task is not None:
            self._task.cancel()

    async def _transcribe(
        self,
        context: ApiContext,
        settings: SessionSettings,
        found: asyncio.Future[str],
        on_delta: OnDelta | None,
        on_transcript: OnTranscript | None,
    ) -> None:
        agreed = AgreedWords()

        def report(transcript: Transcript, is_last: bool) -> None:
            delta = agreed.take(transcript, is_last)
            if delta is not None and on_delta is not None:
                on_delta(self.item_id, delta)
            if on_transcript is not None:
                on_transcript(transcript)

        asked = settings.audio.input.transcription
        try:
            with context.metrics.conversations.transcriptions.track_inprogress():
                model = find_transcription_model(context, asked.model if asked else None)
                transcriber = context.cascade.transcriber(model)
                options = build_options(settings)
                if on_transcript is not None:
                    languages = () if model is None else model.languages
                    request = expect_short_words(options.request, languages)
                    options = replace(options, request=request, partials=True, partial_s=_OFTEN_S)
                self.transcript = await transcriber.transcribe(
                    options, self._iterate_pieces(), report
                )
        except CantataError as error:
            found.set_exception(error)
        else:
            found.set_result(self.transcript.text)
        finally:
            found.cancel()

    async def _iterate_pieces(self) -> AsyncIterator[HeardPiece]:
        while (piece := await self._waiting.get()) is not None:
            yield piece


def _read(words: asyncio.Future[str]) -> None:
    """Read the result, so that a failure that nobody waits for raises no warning."""
    if not words.cancelled():
        words.exception()
