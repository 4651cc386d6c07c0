"""Text of one connection on its way to utterances."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.messages import InputText, SessionConfig, SessionConfigured
from cantata.api.sentences import split_sentences, trimmed
from cantata.api.speaker import Job, Mark, Speak, Speaker
from cantata.api.voice_choice import ChosenVoice, choose_voice
from cantata.contract.errors import InvalidRequest, Overloaded, ProtocolViolation
from cantata.contract.request import SpeechRequest, TextSpan
from cantata.contract.service import ServedModel

MAX_SENTENCE_CHARACTERS = 4096
"""What of an unfinished sentence is read again with every message."""


@dataclass(frozen=True, slots=True)
class _Configuration:
    model: ServedModel
    speaker: ChosenVoice
    options: SessionConfig

    def job(
        self, text: str, text_offset: int, context_id: str | None, *, continued: bool = False
    ) -> Speak:
        options = self.options
        request = SpeechRequest(
            text=text,
            voice=self.speaker.voice,
            speed=options.speed,
            seed=options.seed,
            temperature=options.temperature,
            instructions=options.instructions,
            reference=self.speaker.reference,
            continued=continued,
        )
        return Speak(self.model, request, context_id, text_offset, options.timestamps)


class TextInput:
    """The configuration that holds now and the text that is not yet on its way."""

    def __init__(self, context: ApiContext, speaker: Speaker) -> None:
        self._context = context
        self._speaker = speaker
        self._configuration: _Configuration | None = None
        self._text = ""
        self._text_offset = 0
        """Of `_text` in what was sent since the last commit."""
        self._uncommitted = False
        """Something was queued since the last commit."""

    @property
    def configured(self) -> bool:
        """Whether there is a configuration."""
        return self._configuration is not None

    async def configure(self, message: SessionConfig) -> SessionConfigured:
        """Take a new configuration; a refused one leaves the former in place.

        Raises:
            InvalidRequest: no such model or voice, or not a voice for this model.
            NotReady: no model is served.
        """
        model = self._context.model(message.model)
        speaker = await choose_voice(self._context, model, message.voice)
        self._configuration = _Configuration(model, speaker, message)
        return SessionConfigured(
            context_id=message.context_id,
            model=model.name,
            voice=speaker.id,
            sample_rate=model.sample_rate,
            channels=model.channels,
        )

    def append(self, message: InputText) -> None:
        """Buffer text and, by sentence, queue what is complete. All of it is taken or none.

        Raises:
            ProtocolViolation: there is no configuration yet.
            InvalidRequest: more text than one utterance may have.
            Overloaded: too many sentences wait.
        """
        configuration = self._require()
        sentences: list[TextSpan] = []
        text, rest = self._text + message.text, 0
        limit = configuration.model.max_input_characters
        if configuration.options.split_granularity == "sentence":
            sentences, rest = split_sentences(text)
            limit = min(limit, MAX_SENTENCE_CHARACTERS)
        longest = max([len(text) - rest, *(span.end - span.start for span in sentences)])
        if longest > limit:
            raise InvalidRequest(
                f"{longest} characters are too many for one utterance of "
                f"{configuration.model.name}, which speaks at most {limit} at a time; "
                "this message was dropped",
                param="text",
            )
        self._queue(
            [
                configuration.job(
                    text[span.start : span.end], self._text_offset + span.start, message.context_id
                )
                for span in sentences
            ]
        )
        self._text = text[rest:]
        self._text_offset += rest
        self._uncommitted = self._uncommitted or bool(sentences)

    def commit(self, context_id: str | None) -> None:
        """Queue what is buffered and a mark behind it.

        Raises:
            ProtocolViolation: nothing was sent since the last commit.
            Overloaded: too much waits; the text stays buffered.
        """
        configuration = self._require()
        span = trimmed(self._text, TextSpan(0, len(self._text)))
        text = self._text[span.start : span.end]
        if not text and not self._uncommitted:
            raise ProtocolViolation("input.done without any text before it")
        jobs: list[Job] = [Mark(context_id)]
        if text:
            offset = self._text_offset + span.start
            last = configuration.job(text, offset, context_id, continued=self._uncommitted)
            jobs.insert(0, last)
        self._queue(jobs)
        self.clear()

    def clear(self) -> None:
        """Forget what is buffered."""
        self._text = ""
        self._text_offset = 0
        self._uncommitted = False

    def _require(self) -> _Configuration:
        if self._configuration is None:
            raise ProtocolViolation("session.config must come first")
        return self._configuration

    def _queue(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        if not self._speaker.has_room(len(jobs)):
            raise Overloaded("too much text of this connection waits to be spoken; send it later")
        self._speaker.add(jobs)
