"""Turns one connection's text into utterances."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.speech.messages import InputText, SessionConfig, SessionConfigured
from cantata.api.speech.opening_timer import OpeningTimer, PlannedOpening
from cantata.api.speech.utterance_queue import Job, Mark, Speak, UtteranceQueue
from cantata.api.speech.voice_choice import (
    ChosenVoice,
    Entries,
    choose_lexicons,
    choose_model,
    choose_voice,
)
from cantata.contract.data.errors import InvalidRequest, Overloaded, ProtocolViolation
from cantata.contract.data.request import SpeechRequest, TextSpan
from cantata.contract.service import SpeechModel
from cantata.text.lexicon import select_entries
from cantata.text.sentences import iterate_line_starts, split_clauses, split_sentences, trimmed

MAX_SENTENCE_CHARACTERS = 4096
"""An unfinished sentence is read again with every message."""
_SPLIT = {
    "sentence": split_sentences,
    "clause": split_clauses,
    "adaptive": split_sentences,
}
"""How text is cut while it arrives, by `split_granularity`."""


@dataclass(frozen=True, slots=True)
class _Configuration:
    model: SpeechModel
    voice: ChosenVoice
    options: SessionConfig
    lexicon: Entries

    def build_job(
        self,
        text: str,
        text_offset: int,
        context_id: str | None,
        *,
        continued: bool = False,
        line_start: bool = True,
        more_text: ArrivingText | None = None,
    ) -> Speak:
        options = self.options
        request = SpeechRequest(
            text=text,
            voice=self.voice.voice,
            speed=options.speed,
            seed=options.seed,
            temperature=options.temperature,
            instructions=options.instructions,
            reference=self.voice.reference,
            continued=continued,
            lexicon=select_entries(text, self.lexicon),
            line_start=line_start,
            options=options.own_options(self.model.capabilities.options),
        )
        timestamps = options.timestamps
        return Speak(self.model, request, context_id, text_offset, timestamps, more_text)


class ArrivingText:
    """The text of one utterance while it arrives, in pieces."""

    def __init__(self) -> None:
        # Bounded by what an utterance may have.
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._characters = 0

    def push(self, text: str, limit: int) -> None:
        """Add a piece. Raises InvalidRequest: the text has more than `limit` characters now; the
        piece is dropped."""
        if self._characters + len(text) > limit:
            raise _build_too_long_error(self._characters + len(text), limit)
        if text:
            self._characters += len(text)
            self._pieces.put_nowait(text)

    def take_arrived(self) -> str:
        """What has arrived and was not taken yet, perhaps nothing."""
        taken: list[str] = []
        while not self._pieces.empty():
            piece = self._pieces.get_nowait()
            if piece is None:
                self.close()
                break
            taken.append(piece)
        return "".join(taken)

    def close(self) -> None:
        """The text is complete."""
        self._pieces.put_nowait(None)

    def __aiter__(self) -> ArrivingText:
        return self

    async def __anext__(self) -> str:
        piece = await self._pieces.get()
        if piece is None:
            raise StopAsyncIteration
        return piece


class TextInput:
    def __init__(self, context: ApiContext, utterances: UtteranceQueue) -> None:
        self._context = context
        self._utterances = utterances
        self._configuration: _Configuration | None = None
        self._text = ""
        self._text_offset = 0
        """Offset of `_text` in what was sent since the last commit."""
        self._line_start = True
        """`_text` begins a line."""
        self._uncommitted = False
        """Something was queued since the last commit."""
        self._has_text = False
        """Something was sent since the last commit, if only spaces."""
        self._context_id: str | None = None
        """Of the last message with text."""
        self._openings = OpeningTimer(utterances, self._speak_opening)
        self._arriving: ArrivingText | None = None
        """The text supply of the utterance that takes text as it arrives."""

    @property
    def configured(self) -> bool:
        return self._configuration is not None

    @property
    def unfinished(self) -> bool:
        """Whether text was sent whose `input.done` is still to come."""
        return bool(self._text) or self._uncommitted

    async def configure(self, message: SessionConfig) -> SessionConfigured:
        """Take a new configuration; if it is rejected, the previous one stays.

        Raises:
            InvalidRequest: no such model or voice, or not a voice for this model.
            NotReady: no model is served.
        """
        model = await choose_model(self._context, message.model, message.voice)
        if message.split_granularity == "word" and not model.capabilities.open_text:
            raise InvalidRequest(
                f"{model.name} speaks complete texts only; valid: none, sentence, clause, adaptive",
                "split_granularity",
            )
        voice = await choose_voice(self._context, model, message.voice)
        if message.lexicons and message.split_granularity == "word":
            raise InvalidRequest(
                "text that is spoken word by word cannot have lexicons; valid: none, sentence, "
                "clause, adaptive",
                "split_granularity",
            )
        lexicon = choose_lexicons(self._context, message.lexicons, voice.id)
        self._close_arriving()
        self._openings.stop()
        self._configuration = _Configuration(model, voice, message, lexicon)
        return SessionConfigured(
            context_id=message.context_id,
            model=model.name,
            voice=voice.id,
            sample_rate=model.sample_rate,
            channels=model.channels,
        )

    def append(self, message: InputText) -> None:
        """Buffer text and queue its complete sentences. A message is taken whole or not at all.

        Raises:
            ProtocolViolation: there is no configuration yet.
            InvalidRequest: more text than one utterance may have.
            Overloaded: too many sentences are waiting.
        """
        configuration = self._require()
        self._has_text = self._has_text or bool(message.text)
        if configuration.options.split_granularity == "word":
            self._pass_on(configuration, message)
            return
        sentences: list[TextSpan] = []
        text, rest = self._text + message.text, 0
        limit = configuration.model.max_input_characters
        split = _SPLIT.get(configuration.options.split_granularity)
        if split is not None:
            sentences, rest = split(text)
            limit = min(limit, MAX_SENTENCE_CHARACTERS)
        longest = max([len(text) - rest, *(span.end - span.start for span in sentences)])
        if longest > limit:
            raise _build_too_long_error(longest, limit)
        is_new = bool(sentences) or not self._text
        self._take(configuration, text, sentences, rest, message.context_id)
        if configuration.options.split_granularity == "adaptive":
            self._openings.watch(self._text, is_new=is_new)

    def commit(self, context_id: str | None) -> None:
        """Queue what is buffered and a mark behind it.

        Raises:
            ProtocolViolation: nothing was sent since the last commit.
            Overloaded: too much is waiting; the text stays buffered.
        """
        configuration = self._require()
        span = trimmed(self._text, TextSpan(0, len(self._text)))
        text = self._text[span.start : span.end]
        if not text and not self._uncommitted:
            if not self._has_text:
                raise ProtocolViolation("input.done without any text before it")
            text = " "  # a text without words, as "..." is one
        jobs: list[Job] = [Mark(context_id)]
        if text:
            offset = self._text_offset + span.start
            last = configuration.build_job(
                text,
                offset,
                context_id,
                continued=self._uncommitted,
                line_start=self._line_start or "\n" in self._text[: span.start],
            )
            jobs.insert(0, last)
        self._queue(jobs)
        self.clear()

    def clear(self) -> None:
        self._close_arriving()
        self._openings.stop()
        self._text = ""
        self._text_offset = 0
        self._line_start = True
        self._uncommitted = False
        self._has_text = False

    def _take(
        self,
        configuration: _Configuration,
        text: str,
        spans: list[TextSpan],
        rest: int,
        context_id: str | None,
    ) -> None:
        """Queue pieces of the text, and keep its rest."""
        starts = list(iterate_line_starts(text, spans, rest, line_start=self._line_start))
        jobs: list[Job] = [
            configuration.build_job(
                text[span.start : span.end],
                self._text_offset + span.start,
                context_id,
                line_start=line_start,
            )
            for span, line_start in zip(spans, starts, strict=False)
        ]
        self._queue(jobs)
        self._context_id = context_id
        self._line_start = starts[-1]
        self._text = text[rest:]
        self._text_offset += rest
        self._uncommitted = self._uncommitted or bool(spans)

    def _speak_opening(self, opening: PlannedOpening) -> None:
        span, rest = opening.span, opening.rest
        self._take(self._require(), self._text, [span], rest, self._context_id)
        self._openings.watch(self._text, is_new=True)

    def _pass_on(self, configuration: _Configuration, message: InputText) -> None:
        """Pass text to the open utterance, or begin one."""
        limit = configuration.model.max_input_characters
        if self._arriving is not None:
            self._arriving.push(message.text, limit)
        elif message.text.strip():
            arriving = ArrivingText()
            arriving.push(message.text, limit)
            job = configuration.build_job("", 0, message.context_id, more_text=arriving)
            self._queue([job])
            self._arriving, self._uncommitted = arriving, True

    def _close_arriving(self) -> None:
        if self._arriving is not None:
            self._arriving.close()
            self._arriving = None

    def _require(self) -> _Configuration:
        if self._configuration is None:
            raise ProtocolViolation("session.config must come first")
        return self._configuration

    def _queue(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        if not self._utterances.has_room(len(jobs)):
            raise Overloaded("too much text of this connection is waiting; send it later")
        self._utterances.add(jobs)


def _build_too_long_error(characters: int, limit: int) -> InvalidRequest:
    return InvalidRequest(
        f"text makes an utterance of {characters} characters; at most {limit} are accepted. The "
        "message was dropped",
        "text",
    )
