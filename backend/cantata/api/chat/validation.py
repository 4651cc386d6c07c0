"""A client's request for an answer, checked against the model that is to give it: whether that
model can do what not every one can, and whether it is asked well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cantata.api.chat.body import ChatBody
from cantata.api.chat.conversation import MAX_CHARACTERS, check_messages
from cantata.api.chat.spoken_model import SpokenChatModel
from cantata.api.chat.tools import NamedTool
from cantata.api.context import ApiContext
from cantata.api.schemas import voice_id
from cantata.api.speech.voice_choice import choose_voice, find_speaker
from cantata.audio.formats import FORMATS, OutputFormat, output_format
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chat import AnswerOption, ChatRequest, JsonFormat, Message, Modality
from cantata.contract.data.errors import InvalidRequest, VoiceNotFound
from cantata.contract.service import Samples

FORMAT = "response_format"


def check_options(model: ChatModel, body: ChatBody) -> JsonFormat | None:
    """What the answer is held to. Raises InvalidRequest: the model cannot do it, or fields
    contradict each other; names the field."""
    _check_choice(body)
    for option, field, valid in _list_wanted(body):
        if option not in model.options:
            message = f"{field}: {model.name} does not support it; valid: {valid}"
            raise InvalidRequest(message, field)
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidRequest('top_logprobs needs "logprobs": true', "top_logprobs")
    if body.spoken:
        _check_spoken(body)
    return None if body.response_format is None else body.response_format.read(FORMAT)


def _list_wanted(body: ChatBody) -> Iterator[tuple[AnswerOption, str, str]]:
    """What the request asks for, its field, and what every model takes there."""
    choice = body.choice
    if choice.required or choice.name is not None:
        yield AnswerOption.TOOL_CHOICE, "tool_choice", '"none", "auto"'
    if body.offered and not choice.parallel:
        yield AnswerOption.TOOL_CHOICE, "parallel_tool_calls", "true"
    if body.response_format is not None and body.response_format.type != "text":
        yield AnswerOption.FORMAT, FORMAT, '{"type": "text"}'
    if body.logprobs:
        yield AnswerOption.LOGPROBS, "logprobs", "false"
    if body.logit_bias:
        yield AnswerOption.LOGIT_BIAS, "logit_bias", "{}"
    if body.reasoning_effort not in (None, "none"):
        yield AnswerOption.REASONING_EFFORT, "reasoning_effort", '"none"'


def _check_choice(body: ChatBody) -> None:
    if body.choice.required and not body.tools:
        raise InvalidRequest('tool_choice is "required", but there are no tools', "tool_choice")
    if not isinstance(body.tool_choice, NamedTool):
        return
    names = [tool.function.name for tool in body.tools or ()]
    name = body.tool_choice.function.name
    if name not in names:
        raise InvalidRequest(
            f"tool_choice.function.name: tools has no {name!r}; it has: {', '.join(names)}",
            "tool_choice.function.name",
        )


def _check_spoken(body: ChatBody) -> None:
    """One answer is spoken, and its sound has no tokens to tell of."""
    if body.n > 1:
        raise InvalidRequest("n: only one answer can be spoken; valid: 1", "n")
    if body.logprobs:
        raise InvalidRequest("logprobs: a spoken answer has none; valid: false", "logprobs")


_FILM = frozenset({Modality.AUDIO, Modality.VIDEO})
MAX_SEED = 1 << 63
PCM16 = "pcm16"
PCM16_RATE = 24_000
"""Hz; of OpenAI's clients, none asks which."""


@dataclass(frozen=True, slots=True)
class ValidatedChat:
    """A checked request; its messages are still as the client wrote them."""

    model: ChatModel
    body: ChatBody
    voice: str | None
    """None: the answer is not spoken."""
    output: OutputFormat | None
    """Format of the sound; None: the answer is not spoken."""
    format: JsonFormat | None = None
    """What the answer is held to."""
    batch: bool = False
    """Nobody waits for it."""

    def request(self, messages: tuple[Message, ...], number: int = 0) -> ChatRequest:
        """The request to the model, once the messages have been read. `number`: of the answer, if
        there are several."""
        body = self.body
        return ChatRequest(
            messages,
            voice=self.voice,
            max_tokens=body.max_completion_tokens or body.max_tokens,
            seed=None if body.seed is None else (body.seed + number) % MAX_SEED,
            temperature=body.temperature,
            top_k=None if body.top_k is None else max(body.top_k, 0),
            top_p=body.top_p,
            repetition_penalty=body.repetition_penalty,
            presence_penalty=body.presence_penalty or 0.0,
            frequency_penalty=body.frequency_penalty or 0.0,
            tools=tuple(tool.json_text for tool in body.offered),
            thinks=body.chat_template_kwargs.enable_thinking,
            chat_template_kwargs=body.chat_template_kwargs.extra_json,
            reasoning_effort=body.reasoning_effort,
            format=self.format,
            tool_choice=body.choice,
            logprobs=body.logprobs,
            top_logprobs=body.top_logprobs or 0,
            logit_bias=body.biases,
            batch=self.batch,
        )

    def mixed(self, samples: Samples) -> Samples:
        """[N, C] of the model -> [N, 1] where the output has one channel."""
        if self.output is not None and self.output.channels == 1:
            samples = samples.mean(axis=1, keepdims=True)
        return samples


async def check_chat_body(context: ApiContext, body: ChatBody) -> ValidatedChat:
    """The checked request.

    Raises:
        InvalidRequest: a model that does not exist, does not speak, knows no tools or does not take
            a part; no such voice; or a format that cannot be streamed.
        Overloaded: the queue is full.
    """
    model = await _find_model(context, body)
    _check_tools(model, body)
    answer_format = check_options(model, body)
    if body.mm_processor_kwargs.use_audio_in_video and not model.takes >= _FILM:
        where = "mm_processor_kwargs.use_audio_in_video"
        raise InvalidRequest(f"{where}: {model.name} cannot hear videos; valid: false", where)
    if body.chat_template_kwargs.enable_thinking and not model.thinks:
        where = "chat_template_kwargs.enable_thinking"
        raise InvalidRequest(f"{where}: {model.name} does not think; valid: false", where)
    check_messages(body.messages, model, context.transcripts)
    voice, output = None, None
    if body.spoken:
        voice = _choose_voice(model, body)
        output = context.mark(_choose_output(model, body), model.name)
    if not context.spare:
        model.check_room()  # before files are loaded for nothing
    return ValidatedChat(model, body, voice, output, answer_format, context.spare)


async def _find_model(context: ApiContext, body: ChatBody) -> ChatModel:
    """The model of the request's name, with the one that speaks for it if it is to speak."""
    model = context.get_chat_model(body.model)
    if not body.spoken:
        return model
    asked = body.audio.voice
    usual = context.find_speech_model(model, voice_id(asked))
    if usual is None:
        return model
    speech_model = await find_speaker(context, usual, voice_id(asked))
    with _name_voice_field():
        voice = await choose_voice(context, speech_model, asked)
    return SpokenChatModel(model, speech_model, voice, body.stops, live=body.stream)


def _check_tools(model: ChatModel, body: ChatBody) -> None:
    if not body.offered:
        return
    if not model.calls_tools:
        raise InvalidRequest(f"tools: {model.name} cannot call tools; valid: []", "tools")
    if body.spoken:
        raise InvalidRequest(
            'modalities: an answer that may call tools cannot be spoken; valid: ["text"]',
            "modalities",
        )
    characters = sum(len(tool.json_text) for tool in body.offered)
    if characters > MAX_CHARACTERS:
        raise InvalidRequest(
            f"tools have {characters} characters; at most {MAX_CHARACTERS} are read", "tools"
        )


def _choose_voice(model: ChatModel, body: ChatBody) -> str:
    if not model.voices:
        raise InvalidRequest(
            f'modalities: {model.name} does not speak its answers; valid: ["text"]', "modalities"
        )
    if isinstance(model, SpokenChatModel):
        return model.chosen.id
    with _name_voice_field():
        return model.get_voice(voice_id(body.audio.voice)).id


@contextmanager
def _name_voice_field() -> Iterator[None]:
    """Errors about a voice name the field of chats."""
    try:
        yield
    except VoiceNotFound as error:
        raise VoiceNotFound(error.message, "audio.voice") from None


def _choose_output(model: ChatModel, body: ChatBody) -> OutputFormat:
    name = body.audio.format or (PCM16 if body.stream else "wav")
    if name == PCM16:
        return OutputFormat(FORMATS["pcm"], model.sample_rate, PCM16_RATE, channels=1)
    if body.stream:
        raise InvalidRequest(
            f'audio.format: {name!r} cannot be streamed; valid with "stream": true: {PCM16!r}',
            "audio.format",
        )
    return output_format(name, model.sample_rate, model.channels, None)
