"""A responder that is one model: it hears the user's sound, and speaks or writes its answer."""

from __future__ import annotations

from collections.abc import Sequence

from cantata.api.chat.measured_answer import AnswerCallDelta, MeasuredAnswer, open_answer
from cantata.api.context import ApiContext
from cantata.api.realtime.conversation import Item
from cantata.api.realtime.output_audio import OutputAudio
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.session_settings import SessionSettings
from cantata.api.schemas import VoiceName, voice_id
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chat import ChatRequest, Message, MessagePart, Role, TextPart, Thought
from cantata.contract.data.errors import ContextFull, InvalidRequest
from cantata.media.request_media import RequestMedia
from cantata.metrics import EndReason
from cantata.speech_input.sound import HEARD_RATE

_PARTS_LEFT_OUT = 4
"""How many parts a conversation is divided into when it is too long: the oldest part is left out
first, then the next, and so on."""


class ModelResponder:
    """Implements `SessionResponder`. The model hears the sound of the whole conversation."""

    takes_audio = True

    def __init__(self, model: ChatModel, context: ApiContext, output_audio: OutputAudio) -> None:
        self._model = model
        self._context = context
        self._output_audio = output_audio
        self._answer: MeasuredAnswer | None = None

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def speaks(self) -> bool:
        """Whether the model has voices."""
        return bool(self._model.voices)

    @property
    def default_voice(self) -> str | None:
        return self._model.get_voice(None).id if self.speaks else None

    def check(self, settings: SessionSettings, param: str) -> None:
        """Check that the model can speak as the settings ask."""
        if settings.speaks and not self.speaks:
            where = f"{param}.output_modalities"
            raise InvalidRequest(
                f'{where}: {self.name} does not speak its answers; valid: ["text"]', where
            )
        if settings.offered:
            where = f"{param}.tools"
            raise InvalidRequest(f"{where}: {self.name} calls no tools here; valid: []", where)
        if settings.audio.output.speed != 1:
            where = f"{param}.audio.output.speed"
            raise InvalidRequest(f"{where}: {self.name} speaks at its own pace; valid: 1", where)

    async def get_voice(self, asked: VoiceName | None) -> str | None:
        """The id of a voice of the model; None if it does not speak, whatever clients send."""
        return self._model.get_voice(voice_id(asked)).id if self.speaks else None

    async def answer(self, reply: Reply, items: Sequence[Item]) -> None:
        """Answer: send text while the model thinks, and sound while it speaks. If the conversation
        is too long for the model, it gets as much of the end as fits."""
        with self._output_audio.speaking():
            while True:
                try:
                    await self._answer_items(reply, items)
                    break
                except ContextFull:
                    whole = reply.settings.truncation == "disabled"
                    if whole or len(items) <= 1 or reply.text:
                        raise
                    items = items[max(1, len(items) // _PARTS_LEFT_OUT) :]
            if reply.speaks:
                self._output_audio.end_audio()
                await reply.audio_done.wait()

    def stop_audio(self) -> None:
        """Drop the rest of the answer: the user no longer listens."""
        if self._answer is not None:
            self._answer.end_reason = EndReason.CANCELLED
        self._output_audio.utterances.cancel()

    async def _answer_items(self, reply: Reply, items: Sequence[Item]) -> None:
        with self._context.media.request() as media:
            request = await self._build_request(reply, items, media)
            async with open_answer(self._model, request, (), self._context.metrics) as answer:
                self._answer = answer
                reply.asked = answer.usage.prompt_tokens
                await self._emit_answer(reply, answer)

    async def _build_request(
        self, reply: Reply, items: Sequence[Item], media: RequestMedia
    ) -> ChatRequest:
        settings = reply.settings
        messages = [
            message for item in items if (message := await _build_message(item, media)).parts
        ]
        if settings.instructions:
            messages.insert(0, Message(Role.SYSTEM, (TextPart(settings.instructions),)))
        if not messages:
            raise InvalidRequest("there is nothing to answer: the conversation is empty")
        max_tokens = settings.max_output_tokens
        return ChatRequest(
            tuple(messages),
            voice=reply.voice if reply.speaks else None,
            max_tokens=None if isinstance(max_tokens, str) else max_tokens,
        )

    async def _emit_answer(self, reply: Reply, answer: MeasuredAnswer) -> None:
        max_characters = self._context.settings.realtime.max_item_characters
        async for piece in answer:
            if isinstance(piece, AnswerCallDelta | Thought):
                continue  # A session has no tools, and asks for no thought.
            if not isinstance(piece, str):
                await self._output_audio.say(piece)
                continue
            text = reply.take_fitting(piece, max_characters)
            reply.tokens = answer.tokens
            if text:
                await self._output_audio.outbox.put(reply.add_text(text))
            if reply.cut:
                return
        reply.tokens = answer.tokens
        reply.cut = answer.finish_reason == "length"


async def _build_message(item: Item, media: RequestMedia) -> Message:
    """An item as a message for the model: its sound if there is any, otherwise its text."""
    parts: list[MessagePart] = []
    for content in item.content:
        end_audio = content.meaning or content.text
        if content.sound is not None and content.meaning is None:
            parts.append(await media.to_audio_part(content.sound, HEARD_RATE, "item.content"))
        elif end_audio.strip():
            parts.append(TextPart(end_audio))
    return Message(Role(item.role), tuple(parts))
