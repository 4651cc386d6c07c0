"""`cantata transcribe --microphone`: what is said, until the user ends it."""

from __future__ import annotations

import asyncio
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cantata.api.transcription.live import LiveTranscription
from cantata.api.transcription.live_events import (
    LiveEvent,
    LiveFailure,
    LiveOptions,
    LiveTranscript,
)
from cantata.api.transcription.parts import TranscribedPart
from cantata.api.transcription.result import FinishedTranscription
from cantata.audio.devices import Microphone
from cantata.cli.listener import open_listener
from cantata.cli.transcribe_options import (
    TranscribeArguments,
    choose_form,
    choose_target,
    write_out,
)
from cantata.contract.data.errors import CantataError
from cantata.contract.data.languages import choose_separator
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.contract.transcription_service import TranscriptionModel
from cantata.serving.shutdown import stop_on_signals
from cantata.speech_input.model_transcriber import ModelTranscriber, RecognitionLoad
from cantata.speech_input.sound import SoundInput
from cantata.speech_input.vad import SileroJudge

_ENDPOINTING_S = 0.8
"""Silence after which what was said is final."""
_SHOWN_LINES = 8


async def transcribe_microphone(options: TranscribeArguments, console: Console) -> None:
    """Show the words as they are heard; after the first SIGINT or SIGTERM, write all of them.

    Raises:
        CantataError: there is no microphone, the options are not valid, or something has failed on
            the way; then what was heard before is written, too.
    """
    form = choose_form(options)
    target = choose_target(options.out, "microphone", form)
    microphone = Microphone(options.input_device)
    async with open_listener(options) as model:
        dictation = _Dictation(options, model, console)
        await dictation.run(microphone)
    write_out(dictation.result.verbose(words=True, segments=True), target, form)
    if target is not None:
        console.print(f"{microphone.name} -> {target}", highlight=False, markup=False)
    if microphone.has_lost_sound:
        console.print("Some sound was lost: this machine was too busy to read it in time.")
    if dictation.failure is not None:
        raise dictation.failure


class _Dictation:
    """What is said into a microphone."""

    def __init__(
        self, options: TranscribeArguments, model: TranscriptionModel, console: Console
    ) -> None:
        self._options, self._console = options, console
        request = TranscriptionRequest(
            options.language, options.prompt, options.translate, timestamps=True
        )
        self._live = LiveTranscription(
            ModelTranscriber(model, RecognitionLoad(), SileroJudge),
            SileroJudge(),
            LiveOptions(request, endpointing_s=_ENDPOINTING_S, partials=True),
            self._report,
        )
        self._parts: list[TranscribedPart] = []
        self._shown = _ShownWords(console)
        self.failure: CantataError | None = None
        """What ended it early."""

    @property
    def result(self) -> FinishedTranscription:
        options = self._options
        return FinishedTranscription(
            tuple(self._parts), self._live.seconds, options.language, translate=options.translate
        )

    async def run(self, microphone: Microphone) -> None:
        """Listen until a signal, or until something fails; returns once all is recognized."""
        with microphone, self._shown:
            self._console.print(
                f"Listening to {microphone.name}. Ctrl-C ends.", highlight=False, markup=False
            )
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._live.run(lambda: None), name="transcribe:live")
                    with stop_on_signals() as stop_event:
                        await self._hear(microphone, stop_event)
                    self._live.end()
            finally:
                self._live.close()

    async def _hear(self, microphone: Microphone, stop_event: asyncio.Event) -> None:
        sound = SoundInput("pcm", microphone.rate)
        while not stop_event.is_set() and self.failure is None:
            try:
                data = await asyncio.to_thread(microphone.read)
            except CantataError as error:
                self.failure = error
                return
            await self._live.feed(sound.feed(data))

    def _report(self, event: LiveEvent) -> None:
        match event:
            case LiveFailure(error):
                self.failure = self.failure or error
            case LiveTranscript(transcript, start_s, is_final=True) if transcript.text:
                part = TranscribedPart(start_s, transcript, self._options.translate)
                self._parts.append(part)
                self._shown.add(self.result.text, transcript.text)
            case LiveTranscript(transcript, is_final=False):
                self._shown.update(transcript)


class _ShownWords:
    """The last words: on a terminal, in place, until all are written; otherwise line by line, once
    they are final."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True, auto_refresh=False)
        self._final = ""

    def __enter__(self) -> _ShownWords:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def add(self, text: str, more: str) -> None:
        """All that is final, and what has just become so."""
        self._final = text
        if self._console.is_terminal:
            self._show("")
        else:
            self._console.print(more, highlight=False, markup=False, soft_wrap=True)

    def update(self, transcript: Transcript) -> None:
        """What follows, as far as it is known."""
        if self._console.is_terminal:
            separator = choose_separator(self._final, transcript.text, transcript.language)
            self._show(separator + transcript.text)

    def _show(self, uncertain: str) -> None:
        text = Text(self._final).append(uncertain, style="dim")
        room = self._console.width * _SHOWN_LINES
        self._live.update(text[-room:] if len(text) > room else text, refresh=True)
