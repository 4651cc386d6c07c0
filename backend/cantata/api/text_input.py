"""Text of one connection on its way to utterances."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.messages import InputText, SessionConfig, SessionConfigured
from cantata.api.schemas import voice_id
from cantata.api.sentences import split_sentences
from cantata.api.speaker import Job, Mark, Speak, Speaker
from cantata.contract.errors import InvalidRequest, Overloaded, ProtocolViolation
from cantata.contract.request import SpeechRequest
from cantata.contract.service import ServedModel


@dataclass(frozen=True, slots=True)
class _Configuration:
    model: ServedModel
    voice: str
    options: SessionConfig

    def job(self, text: str, context_id: str | None) -> Speak:
        options = self.options
        request = SpeechRequest(
            text=text,
            voice=self.voice,
            speed=options.speed,
            seed=options.seed,
            temperature=options.temperature,
            instructions=options.instructions,
        )
        return Speak(self.model, request, context_id)


class TextInput:
    """The configuration that holds now and the text that is not yet on its way."""

    def __init__(self, context: ApiContext, speaker: Speaker) -> None:
        self._context = context
        self._speaker = speaker
        self._configuration: _Configuration | None = None
        self._text = ""
        self._uncommitted = False
        """Something was queued since the last commit."""

    @property
    def configured(self) -> bool:
        """Whether there is a configuration."""
        return self._configuration is not None

    def configure(self, message: SessionConfig) -> SessionConfigured:
        """Take a new configuration; a refused one leaves the former in place.

        Raises:
            InvalidRequest: no such model or voice.
            NotReady: no model is served.
        """
        model = self._context.model(message.model)
        voice = model.voice(voice_id(message.voice))
        self._configuration = _Configuration(model, voice.id, message)
        return SessionConfigured(
            context_id=message.context_id,
            model=model.name,
            voice=voice.id,
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
        sentences: list[str] = []
        rest = self._text + message.text
        if configuration.options.split_granularity == "sentence":
            sentences, rest = split_sentences(rest)
        limit = configuration.model.max_input_characters
        longest = max(map(len, [*sentences, rest]))
        if longest > limit:
            raise InvalidRequest(
                f"{longest} characters are too many for one utterance of "
                f"{configuration.model.name}, which speaks at most {limit} at a time; "
                "this message was dropped",
                param="text",
            )
        self._queue([configuration.job(text, message.context_id) for text in sentences])
        self._text = rest
        self._uncommitted = self._uncommitted or bool(sentences)

    def commit(self, context_id: str | None) -> None:
        """Queue what is buffered and a mark behind it.

        Raises:
            ProtocolViolation: nothing was sent since the last commit.
            Overloaded: too much waits; the text stays buffered.
        """
        configuration = self._require()
        text = self._text.strip()
        if not text and not self._uncommitted:
            raise ProtocolViolation("input.done without any text before it")
        jobs: list[Job] = [configuration.job(text, context_id)] if text else []
        self._queue([*jobs, Mark(context_id)])
        self.clear()

    def clear(self) -> None:
        """Forget what is buffered."""
        self._text = ""
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
