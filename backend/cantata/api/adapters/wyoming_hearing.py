"""Wyoming's speech to text: sound in events, written down while it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk
from wyoming.event import Event

from cantata.api.adapters.arriving_sound import ArrivingSamples
from cantata.api.context import ApiContext
from cantata.api.transcription.body import MAX_PROMPT_CHARACTERS
from cantata.api.transcription.live import LiveTranscription
from cantata.api.transcription.live_events import (
    LiveEvent,
    LiveFailure,
    LiveOptions,
    LiveTranscript,
)
from cantata.audio.formats import MAX_SAMPLE_RATE, MIN_SAMPLE_RATE
from cantata.audio.pcm import BYTES_PER_SAMPLE
from cantata.contract.data.errors import ProtocolViolation
from cantata.contract.data.languages import choose_separator
from cantata.contract.data.transcripts import TranscriptionRequest
from cantata.contract.transcription_service import TranscriptionModel
from cantata.speech_input.vad import SileroJudge

_MAX_CHANNELS = 8

Format = tuple[int, int, int]
"""Sample rate in Hz, bytes per sample, channels."""


class WyomingHearing:
    """The sound from one `audio-start` to its `audio-stop`; make it with `begin`. `post`: sends an
    event to the client."""

    def __init__(
        self,
        context: ApiContext,
        model: TranscriptionModel,
        request: TranscriptionRequest,
        post: Callable[[Event], None],
    ) -> None:
        self._metrics = context.metrics.transcriptions
        self._model = model
        self._post = post
        self._live = LiveTranscription(
            context.cascade.transcriber(model), SileroJudge(), LiveOptions(request), self._report
        )
        self._format: Format | None = None
        self._sound: ArrivingSamples | None = None
        self._texts: list[str] = []
        self._language: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_ended = False

    @classmethod
    async def begin(
        cls, context: ApiContext, transcribe: Transcribe | None, post: Callable[[Event], None]
    ) -> WyomingHearing:
        """Prepare for sound.

        Raises:
            ModelNotFound: no such model is served, or none at all.
            Overloaded: there is no room.
            NotInstalled: names what is missing.
            ProtocolViolation: the language is no text.
        """
        transcribe = transcribe or Transcribe()
        if not isinstance(transcribe.language, str | None):
            raise ProtocolViolation("transcribe: language must be text")
        model = context.get_transcription_model(transcribe.name)
        model.check_room()
        await context.cascade.prepare()
        names = (*(transcribe.transcript_names or ()), *(transcribe.transcript_terms or ()))
        bias = ", ".join(names)[:MAX_PROMPT_CHARACTERS]
        request = TranscriptionRequest(language=transcribe.language, prompt=bias)
        return cls(context, model, request, post)

    def start(
        self, group: asyncio.TaskGroup, name: str, on_end: Callable[[WyomingHearing], None]
    ) -> None:
        """Write down what is fed, in a task of `group`; its failure is one that ends a connection.
        `on_end`: is called after the transcript has been posted."""
        self._task = group.create_task(self._run(on_end), name=f"{name}:listen")

    async def feed(self, chunk: AudioChunk) -> None:
        """Add sound. Raises ProtocolViolation: it is of another form than sound before, or of one
        that is not understood."""
        if self._is_ended:
            return
        form = (chunk.rate, chunk.width, chunk.channels)
        if self._sound is None:
            _check(form)
            self._format = form
            self._sound = ArrivingSamples("pcm", chunk.rate, chunk.channels, self._live.feed)
        if form != self._format:
            raise ProtocolViolation("audio-chunk: rate, width and channels must stay the same")
        await self._sound.feed(chunk.audio)

    async def end(self) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        if self._sound is not None:
            await self._sound.end()
        self._live.end()

    async def give_way(self) -> None:
        """Other sound follows: finish what is complete, and drop what is not."""
        if not self._is_ended:
            self.cancel()
        if self._task is not None:
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Nobody wants the transcript."""
        self._live.close()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _run(self, on_end: Callable[[WyomingHearing], None]) -> None:
        with self._metrics.track(self._model.name, lambda: self._live.seconds):
            await self._live.run(lambda: None)
        if not self._texts:
            self._post(TranscriptStart(language=self._language).event())
        self._post(Transcript("".join(self._texts), language=self._language).event())
        self._post(TranscriptStop().event())
        on_end(self)

    def _report(self, event: LiveEvent) -> None:
        match event:
            case LiveFailure(error):
                raise error
            case LiveTranscript(transcript) if transcript.text:
                self._language = self._language or transcript.language or None
                if not self._texts:
                    self._post(TranscriptStart(language=self._language).event())
                before = self._texts[-1] if self._texts else ""
                more = choose_separator(before, transcript.text, transcript.language)
                more += transcript.text
                self._post(TranscriptChunk(text=more).event())
                self._texts.append(more)


def _check(form: Format) -> None:
    rate, width, channels = form
    if width != BYTES_PER_SAMPLE:
        raise ProtocolViolation(f"audio-chunk: width is {width}; valid: {BYTES_PER_SAMPLE}")
    if not MIN_SAMPLE_RATE <= rate <= MAX_SAMPLE_RATE:
        valid = f"{MIN_SAMPLE_RATE} to {MAX_SAMPLE_RATE}"
        raise ProtocolViolation(f"audio-chunk: rate is {rate}; valid: {valid}")
    if not 1 <= channels <= _MAX_CHANNELS:
        raise ProtocolViolation(f"audio-chunk: channels is {channels}; valid: 1 to {_MAX_CHANNELS}")
