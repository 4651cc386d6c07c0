"""Transcribes utterances with a model of this server, while they are spoken."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from cantata.contract.data.errors import CantataError
from cantata.contract.data.languages import join_texts
from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.contract.model.recognizer import Sound
from cantata.contract.transcription_service import Recognition, TranscriptionModel
from cantata.speech_input.sound import Heard
from cantata.speech_input.transcription import HeardPiece, Report, UtteranceOptions
from cantata.speech_input.utterance_cutter import SoundSegment, UtteranceCutter
from cantata.speech_input.vad import WINDOW, SpeechJudge

_FED_SAMPLES = SPEECH_RATE // 4
"""Sound sent to the model at a time, unless something is to be recognized."""
_PARTIAL_SHARE = 3.0
"""On servers without time to spare, each conversation's partial transcripts are so many times as
far apart as one takes, and all together take one part in so many of the recognizer's time: whoever
pauses waits for the one in progress."""
_JUDGED_AT_ONCE = 16
"""Windows judged before other tasks get their turn."""
_FULL_SCALE = np.float32(32768)


@dataclass(slots=True)
class RecognitionLoad:
    """What a server's conversations have asked their recognizer for and do not have yet."""

    waiting: dict[object, float] = field(default_factory=dict)
    """Windows that wait for a transcript, and since when."""
    took_s: float = 0.0
    """How long the last one was waited for."""
    partials_from: float = 0.0
    """When the next partial transcript may be asked for, by the monotonic clock."""

    @property
    def has_time(self) -> bool:
        """Whether a partial transcript may be asked for."""
        return not self.waiting and time.monotonic() >= self.partials_from

    def get_partial_interval(self, wanted_s: float) -> int:
        """Sound from one partial transcript to the next, at least so many seconds of it."""
        return round(max(wanted_s, _PARTIAL_SHARE * self.took_s) * SPEECH_RATE)

    def begin(self, window: object) -> None:
        """A transcript of a window was asked for."""
        self.waiting.setdefault(window, time.monotonic())

    def end(self, window: object) -> None:
        since = self.waiting.pop(window, None)
        if since is not None:
            now = time.monotonic()
            self.took_s = now - since
            self.partials_from = now + (_PARTIAL_SHARE - 1) * self.took_s

    def forget(self, window: object) -> None:
        """Nobody waits for it any more."""
        self.waiting.pop(window, None)


class ModelTranscriber:
    """Implements `Transcriber`. `new_judge`: of sound that nobody has judged."""

    def __init__(
        self,
        model: TranscriptionModel,
        load: RecognitionLoad,
        new_judge: Callable[[], SpeechJudge],
    ) -> None:
        self._model = model
        self._load = load
        self._new_judge = new_judge

    async def transcribe(
        self, options: UtteranceOptions, pieces: AsyncIterator[HeardPiece], report: Report
    ) -> Transcript:
        """The words of one utterance, in windows that the model can take."""
        cutter = UtteranceCutter(self._model.max_window_s, options.threshold)
        utterance = _Utterance(self._model, self._load, options, report)
        try:
            async with aclosing(self._judge_pieces(pieces)) as judged:
                async for sound, probability in judged:
                    for passage in cutter.take(sound, probability):
                        await utterance.take(passage, is_quiet=cutter.is_quiet)
            return await utterance.finish()
        finally:
            await utterance.close()

    async def _judge_pieces(
        self, pieces: AsyncIterator[HeardPiece]
    ) -> AsyncGenerator[tuple[Heard, float], None]:
        """The sound, and how likely it is speech."""
        judge: SpeechJudge | None = None
        rest: Heard = np.zeros(0, np.int16)
        count = 0
        async for piece in pieces:
            if piece.probability is not None:
                yield piece.sound, piece.probability
                continue
            if judge is None:
                judge = await asyncio.to_thread(self._new_judge)
            rest = np.concatenate([rest, piece.sound])
            while len(rest) >= WINDOW:
                window, rest = rest[:WINDOW], rest[WINDOW:]
                yield window, judge.compute_probability(window)
                count += 1
                if count % _JUDGED_AT_ONCE == 0:
                    await asyncio.sleep(0)


class _Utterance:
    """The windows of one utterance."""

    def __init__(
        self,
        model: TranscriptionModel,
        load: RecognitionLoad,
        options: UtteranceOptions,
        report: Report,
    ) -> None:
        self._model, self._load = model, load
        self._options, self._report = options, report
        self._window: _Window | None = None
        self._parts: list[Transcript] = []

    async def take(self, passage: SoundSegment, *, is_quiet: bool) -> None:
        if passage.begins:
            await self._end_window(passage.before)
        if self._window is None:
            self._window = await self._open()
        window = self._window
        min_interval = self._load.get_partial_interval(self._options.partial_s)
        is_due = window.unasked >= min_interval and not is_quiet
        is_partial = self._options.partials and is_due and self._load.has_time
        await window.feed(_to_sound(passage.sound), recognize=passage.is_pause or is_partial)

    async def finish(self) -> Transcript:
        await self._end_window()
        return _join(self._parts)

    async def close(self) -> None:
        """Free the window in progress."""
        window, self._window = self._window, None
        if window is not None:
            await window.close()

    async def _open(self) -> _Window:
        kind = _OpenWindow if self._model.has_partials else _WholeWindow
        window = kind(self._model, self._options.request, self._load, self._report)
        await window.open()
        return window

    async def _end_window(self, consists_of: Heard | None = None) -> None:
        """Take over the words of the window in progress, if there is one. `consists_of`: all of its
        sound, where it was given more."""
        if self._window is None:
            return
        if consists_of is not None:
            await self.close()
            self._window = await self._open()
            await self._window.feed(_to_sound(consists_of), recognize=False)
        transcript = await self._window.finish()
        await self.close()
        self._parts.append(transcript)
        self._report(transcript, True)


class _Window(Protocol):
    """One window of an utterance."""

    unasked: int
    """Samples since the words were asked for."""

    async def open(self) -> None: ...

    async def feed(self, sound: Sound, *, recognize: bool) -> None: ...

    async def finish(self) -> Transcript: ...

    async def close(self) -> None: ...


class _OpenWindow:
    """A window of sound that a model recognizes while it arrives."""

    def __init__(
        self,
        model: TranscriptionModel,
        request: TranscriptionRequest,
        load: RecognitionLoad,
        report: Report,
    ) -> None:
        self._model, self._request = model, request
        self._load, self._report = load, report
        self._stack = AsyncExitStack()
        self._reader: asyncio.Task[None] | None = None
        self._pending: list[Sound] = []
        self._length = self._asked = 0
        """Samples of the window; those that it had when its words were asked for."""
        self.unasked = 0

    async def open(self) -> None:
        recognition = await self._stack.enter_async_context(self._model.run(self._request))
        self._recognition = recognition
        self._reader = asyncio.create_task(self._read(recognition), name="transcriber:partials")

    async def feed(self, sound: Sound, *, recognize: bool) -> None:
        self._pending.append(sound)
        self._length += len(sound)
        self.unasked += len(sound)
        if recognize:
            self._asked, self.unasked = self._length, 0
            self._load.begin(self)
        if recognize or sum(map(len, self._pending)) >= _FED_SAMPLES:
            await self._flush(recognize=recognize)

    async def finish(self) -> Transcript:
        if self._pending:
            await self._flush(recognize=False)
        if self._asked < self._length:
            self._load.begin(self)
        transcript = await self._recognition.finish()
        self._load.end(self)
        return transcript

    async def close(self) -> None:
        self._load.forget(self)
        try:
            if self._reader is not None:
                self._reader.cancel()
                await asyncio.gather(self._reader, return_exceptions=True)
        finally:
            await self._stack.aclose()

    async def _flush(self, *, recognize: bool) -> None:
        sound, self._pending = np.concatenate(self._pending), []
        await self._recognition.feed(sound, recognize=recognize)

    async def _read(self, recognition: Recognition) -> None:
        try:
            async for transcript in recognition.partials():
                if round(transcript.seconds * SPEECH_RATE) >= self._asked:
                    self._load.end(self)
                self._report(transcript, False)
        except CantataError:
            return  # `finish` and `feed` say so


class _WholeWindow:
    """Of a model that recognizes whole windows. What has been said is recognized when a pause
    begins, as if it were all; if the speaker goes on, that was in vain."""

    def __init__(
        self,
        model: TranscriptionModel,
        request: TranscriptionRequest,
        load: RecognitionLoad,
        report: Report,
    ) -> None:
        self._model, self._request = model, request
        self._load, self._report = load, report
        self._sound: list[Sound] = []
        self._task: asyncio.Task[Transcript] | None = None
        self.unasked = 0

    async def open(self) -> None:
        """Nothing to do before there is all of the sound."""

    async def feed(self, sound: Sound, *, recognize: bool) -> None:
        await self.close()
        self._sound.append(sound)
        if recognize:
            self._task = asyncio.create_task(self._recognize(), name="transcriber:window")

    async def finish(self) -> Transcript:
        if self._task is None:
            self._task = asyncio.create_task(self._recognize(), name="transcriber:window")
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _recognize(self) -> Transcript:
        self._load.begin(self)
        try:
            async with self._model.run(self._request) as recognition:
                await recognition.feed(np.concatenate(self._sound))
                return await recognition.finish()
        finally:
            self._load.forget(self)


def _to_sound(heard: Heard) -> Sound:
    return heard.astype(np.float32) / _FULL_SCALE


def _join(parts: list[Transcript]) -> Transcript:
    """The transcript of an utterance whose windows have these."""
    if len(parts) == 1:
        return parts[0]
    return Transcript(
        join_texts((part.text, part.language) for part in parts),
        language=next((part.language for part in parts if part.language), ""),
        logprobs=tuple(token for part in parts for token in part.logprobs),
        seconds=sum(part.seconds for part in parts),
    )
