"""A responder made of parts: a recognizer for the user's words, a chat that answers them, and a
model that speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from cantata.api.context import ApiContext
from cantata.api.realtime.chat_messages import make_messages
from cantata.api.realtime.conversation import Item
from cantata.api.realtime.output_audio import OutputAudio
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.served_chat import ServedChat
from cantata.api.realtime.session_settings import SessionSettings
from cantata.api.schemas import VoiceName
from cantata.api.speech.messages import InputText, SessionConfig
from cantata.api.speech.text_input import TextInput
from cantata.api.speech.voice_choice import choose_voice
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.service import SpeechModel
from cantata.speech_input.chat import Chat, ChatMessage, ChatTools, ToolCallDelta
from cantata.speech_input.transcription import TranscriptionFailed

_PIECE = 64
"""Characters passed to the speech model at a time; at most half as many sentences."""


class CascadeResponder:
    """Implements `SessionResponder`: speaks the chat's answer while it is being written."""

    takes_audio = False
    speaks = True

    def __init__(
        self,
        name: str,
        model: SpeechModel,
        thinker: ChatModel | None,
        context: ApiContext,
        output_audio: OutputAudio,
    ) -> None:
        """
        Args:
            name: of the session's model: the one that speaks, or the one that writes.
            thinker: writes the answers; None: the cascade's own chat does.
        """
        self.name = name
        self._model = model
        self._chat: Chat = (
            context.cascade.chat if thinker is None else ServedChat(thinker, context.metrics)
        )
        self._context = context
        self._output_audio = output_audio
        self._text = TextInput(context, output_audio.utterances)

    @property
    def default_voice(self) -> str:
        return self._model.get_voice(None).id

    def check(self, settings: SessionSettings, param: str) -> None:
        """Check that the chat can call the tools as the settings ask."""
        choices = self._chat.choices
        if settings.offered and not choices:
            where = f"{param}.tools"
            raise InvalidRequest(f"{where}: what answers here calls no tools; valid: []", where)
        choice = settings.tool_choice
        kind = choice if isinstance(choice, str) else choice.type
        if settings.offered and kind not in choices:
            where = f"{param}.tool_choice"
            valid = ", ".join((*choices, "none"))
            raise InvalidRequest(f"{where}: {kind!r} is not served here; valid: {valid}", where)
        if settings.offered and not settings.parallel_tool_calls and "required" not in choices:
            where = f"{param}.parallel_tool_calls"
            message = f"{where}: what answers here cannot be held to one call; valid: true"
            raise InvalidRequest(message, where)

    async def get_voice(self, asked: VoiceName | None) -> str:
        """The id of a voice of the model, or of an uploaded one."""
        return (await choose_voice(self._context, self._model, asked)).id

    async def answer(self, reply: Reply, items: Sequence[Item]) -> None:
        """Answer as soon as all of the user's words are known."""
        messages = await self._build_messages(reply, items)
        if reply.speaks:
            await self._text.configure(self._build_configuration(reply))
        max_tokens = reply.settings.max_output_tokens
        limit = None if isinstance(max_tokens, str) else max_tokens
        max_characters = self._context.settings.realtime.max_item_characters
        whole = reply.settings.truncation == "disabled"
        asked = self._chat.answer(messages, limit, _choose_tools(reply.settings), whole=whole)
        async with aclosing(asked) as deltas:
            async for delta in deltas:
                reply.cut = reply.cut or delta.cut
                if delta.call is not None:
                    await self._call(reply, delta.call, max_characters)
                # Words behind a call have no message of their own, which would part the call from
                # its output; they go on with the message before it, if there is one.
                elif reply.has_message or not reply.calls.items:
                    await self._speak_text(reply, reply.take_fitting(delta.text, max_characters))
                if reply.cut:
                    break
        if reply.speaks and reply.text.strip():
            await self._output_audio.utterances.wait_for_room(2)
            self._text.commit(reply.id)
            await reply.audio_done.wait()

    def stop_audio(self) -> None:
        """Stop the chat's answer and the speech."""
        self._text.clear()
        self._output_audio.utterances.cancel()

    async def _build_messages(self, reply: Reply, items: Sequence[Item]) -> list[ChatMessage]:
        """The messages for the chat, once all words are known."""
        waiting = [part.words for item in items for part in item.content if part.words is not None]
        if waiting:
            limit_s = self._context.settings.realtime.answer_timeout_s
            # Not awaited themselves: a cancel of this answer must not end them.
            done, late = await asyncio.wait(waiting, timeout=limit_s)
            if late:
                raise TranscriptionFailed(f"the speech was not transcribed within {limit_s:g} s")
            for words in done:
                words.result()
        messages = make_messages(items)
        if reply.settings.instructions:
            messages.insert(0, ChatMessage("system", reply.settings.instructions))
        reply.asked = sum(len(one.text) for one in messages)
        return messages

    async def _call(self, reply: Reply, piece: ToolCallDelta, max_characters: int) -> None:
        """Tell of a call; arguments that are too long end the answer."""
        reply.cut = reply.cut or reply.calls.characters + len(piece.arguments) > max_characters
        if not reply.cut:
            for event in reply.take_call(piece):
                await self._output_audio.outbox.put(event)

    async def _speak_text(self, reply: Reply, text: str) -> None:
        if not text:
            return
        for event in (*reply.begin_message(), reply.add_text(text)):
            await self._output_audio.outbox.put(event)
        await self._speak(reply, text)

    async def _speak(self, reply: Reply, text: str) -> None:
        utterances = self._output_audio.utterances
        for start in range(0, len(text) if reply.speaks else 0, _PIECE):
            await utterances.wait_for_room(_PIECE // 2)
            piece = text[start : start + _PIECE]
            self._text.append(InputText(type="input.text", text=piece, context_id=reply.id))

    def _build_configuration(self, reply: Reply) -> SessionConfig:
        output = reply.settings.audio.output
        return SessionConfig(
            type="session.config",
            model=self._model.name,
            voice=output.voice,
            speed=output.speed,
            split_granularity="word" if self._model.capabilities.open_text else "adaptive",
            timestamps=True,
        )


def _choose_tools(settings: SessionSettings) -> ChatTools:
    shown = (tool.model_dump(exclude={"type"}, exclude_none=True) for tool in settings.offered)
    functions = tuple(shown)
    choice, parallel = settings.tool_choice, settings.parallel_tool_calls
    if isinstance(choice, str):
        return ChatTools(functions, choice, parallel=parallel)
    return ChatTools(functions, None, choice.name, parallel)
