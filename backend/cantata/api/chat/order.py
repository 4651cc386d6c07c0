"""A client's request for an answer, checked against the model that is to give it."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.api.chat.answer_options import check_options
from cantata.api.chat.body import ChatBody
from cantata.api.chat.conversation import MAX_CHARACTERS, check_messages
from cantata.api.chat.spoken_model import SpokenChatModel
from cantata.api.context import ApiContext
from cantata.api.schemas import voice_id
from cantata.audio.formats import FORMATS, OutputFormat, output_format
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chat import ChatRequest, JsonFormat, Message, Modality
from cantata.contract.data.errors import InvalidRequest, VoiceNotFound
from cantata.contract.service import Samples

_FILM = frozenset({Modality.AUDIO, Modality.VIDEO})
MAX_SEED = 1 << 63
PCM16 = "pcm16"
PCM16_RATE = 24_000
"""Hz; of OpenAI's clients, none asks which."""


@dataclass(frozen=True, slots=True)
class ChatOrder:
    """A checked request; its messages are still as the client wrote them."""

    model: ChatModel
    body: ChatBody
    voice: str | None
    """None: the answer is not spoken."""
    output: OutputFormat | None
    """Format of the sound; None: the answer is not spoken."""
    format: JsonFormat | None = None
    """What the answer is held to."""

    def request(self, messages: tuple[Message, ...], number: int = 0) -> ChatRequest:
        """The request to the model, once the messages have been read.

        Args:
            messages: all of them.
            number: of the answer, if there are several.
        """
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
            reasoning_effort=body.reasoning_effort,
            format=self.format,
            tool_choice=body.choice,
            logprobs=body.logprobs,
            top_logprobs=body.top_logprobs or 0,
            logit_bias=body.biases,
        )

    def mixed(self, samples: Samples) -> Samples:
        """[N, C] of the model -> [N, 1] where the output has one channel."""
        if self.output is not None and self.output.channels == 1:
            samples = samples.mean(axis=1, keepdims=True)
        return samples


def chat_order(context: ApiContext, body: ChatBody) -> ChatOrder:
    """The checked request.

    Raises:
        InvalidRequest: a model that does not exist, does not speak, knows no tools or does not take
            a part; no such voice; or a format that cannot be streamed.
        Overloaded: the queue is full.
    """
    model = _find_model(context, body)
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
        voice = _voice(model, body)
        output = context.mark(_output(model, body), model.name)
    # Before files are loaded for nothing.
    model.check_room()
    return ChatOrder(model, body, voice, output, answer_format)


def _find_model(context: ApiContext, body: ChatBody) -> ChatModel:
    """The model of the request's name, with the one that speaks for it if it is to speak."""
    model = context.chat_model(body.model)
    if not body.spoken:
        return model
    speech_model = context.find_speech_model(model, voice_id(body.audio.voice))
    return model if speech_model is None else SpokenChatModel(model, speech_model, body.stops)


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


def _voice(model: ChatModel, body: ChatBody) -> str:
    if not model.voices:
        raise InvalidRequest(
            f'modalities: {model.name} does not speak its answers; valid: ["text"]', "modalities"
        )
    try:
        return model.voice(voice_id(body.audio.voice)).id
    except VoiceNotFound as error:
        raise VoiceNotFound(error.message, "audio.voice") from None


def _output(model: ChatModel, body: ChatBody) -> OutputFormat:
    name = body.audio.format or (PCM16 if body.stream else "wav")
    if name == PCM16:
        return OutputFormat(FORMATS["pcm"], model.sample_rate, PCM16_RATE, channels=1)
    if body.stream:
        raise InvalidRequest(
            f'audio.format: {name!r} cannot be streamed; valid with "stream": true: {PCM16!r}',
            "audio.format",
        )
    return output_format(name, model.sample_rate, model.channels, None)
