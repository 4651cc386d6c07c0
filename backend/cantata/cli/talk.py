"""`cantata talk`: a spoken conversation at this machine's microphone and loudspeaker."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soxr
from rich.console import Console

from cantata.audio.devices import Microphone
from cantata.audio.loudspeaker import Loudspeaker
from cantata.cli.conversation import ChatHistory, QuestionAndAnswer, save_conversation
from cantata.cli.own_server import choose_mind, choose_voice_model, open_server
from cantata.cli.server_address import ask_server
from cantata.client import KEY_VARIABLE
from cantata.client.realtime import (
    RATE,
    AnswerEnded,
    AnswerSound,
    AnswerStarted,
    AnswerText,
    Complaint,
    ConversationInterrupted,
    ConversationResumed,
    Heard,
    RealtimeEvent,
    RealtimeSession,
    SpeechStarted,
    open_conversation,
)
from cantata.contract.data.errors import ConfigError, get_first_error
from cantata.serving.shutdown import run_until, stop_on_signals


@dataclass(frozen=True, slots=True)
class TalkArguments:
    """The command's options; None is what the model or the system does by itself."""

    instructions: str | None
    voice: str | None
    model: str | None
    server: str | None
    input_device: str | None
    headphones: bool
    """The microphone does not hear the answers, so the user may speak into them."""
    save: Path | None
    """A Markdown file."""


def talk(options: TalkArguments, console: Console) -> None:
    """Converse until Ctrl-C. Words go to standard output, all else to the console.

    Raises:
        CantataError: there is no microphone, loudspeaker or model, or the server refuses or ends
            the conversation.
    """
    microphone, loudspeaker = Microphone(options.input_device), Loudspeaker(RATE)
    with _open(options, console) as (server, model):
        conversation = _SpokenConversation(options, microphone, loudspeaker, console)
        try:
            asyncio.run(conversation.hold(server, model))
        except ExceptionGroup as errors:
            raise get_first_error(errors) from None
        finally:
            conversation.save()


class _SpokenConversation:
    def __init__(
        self,
        options: TalkArguments,
        microphone: Microphone,
        loudspeaker: Loudspeaker,
        console: Console,
    ) -> None:
        self._options = options
        self._microphone, self._loudspeaker = microphone, loudspeaker
        self._console = console
        self._said = ChatHistory(options.instructions)
        self._question = self._answer = ""
        self._is_answering = False
        self._stopped: str | None = None
        """An answer that was interrupted; what still comes of it is not played."""

    async def hold(self, server: str, model: str | None) -> None:
        """Listen, print and play until a signal or Ctrl-D."""
        options = self._options
        key = os.environ.get(KEY_VARIABLE)
        async with open_conversation(server, model, key) as session:
            await session.configure(
                options.instructions, options.voice, interrupts=options.headphones
            )
            with self._microphone, self._loudspeaker, stop_on_signals() as stop:
                interrupts = "Speak" if options.headphones else "Enter"
                self._print(
                    f"Listening to {self._microphone.name}. {interrupts} interrupts, Ctrl-C ends."
                )
                await run_until(stop, self._converse(session, stop))

    def save(self) -> None:
        """Write the file that was asked for."""
        if self._options.save is not None and self._said.turns:
            save_conversation(self._said, self._options.save)

    async def _converse(self, session: RealtimeSession, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(session), name="talk:listen")
            group.create_task(self._watch_keys(session, stop), name="talk:keys")
            async for event in session.events():
                await self._take(session, event)
            stop.set()

    async def _listen(self, session: RealtimeSession) -> None:
        rate = self._microphone.rate
        resampler = soxr.ResampleStream(rate, RATE, 1, dtype="int16", quality="LQ")
        while True:
            data = await self._read()
            if self._hears_itself:
                continue
            sound = resampler.resample_chunk(np.frombuffer(data, np.int16))
            await session.hear(sound.tobytes())

    async def _read(self) -> bytes:
        """The next sound of the microphone. WHY also when it is cancelled: PortAudio must not close
        a device that a thread still reads."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._microphone.read))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await asyncio.wait([reading])
            raise

    @property
    def _hears_itself(self) -> bool:
        """Without headphones, the microphone would take the answer for the user."""
        sounds = self._is_answering or self._loudspeaker.is_playing
        return sounds and not self._options.headphones

    async def _take(self, session: RealtimeSession, event: RealtimeEvent) -> None:
        match event:
            case SpeechStarted():
                await self._stop_playing(session)
            case Heard(text):
                self._question = text
                print(f"> {text}", flush=True)
            case AnswerStarted():
                self._is_answering, self._answer = True, ""
            case AnswerText(text):
                self._answer += text
                print(text, end="", flush=True)
            case AnswerSound(item_id, pcm) if item_id != self._stopped:
                self._loudspeaker.put(item_id, pcm)
            case AnswerEnded(failure):
                self._is_answering = False
                self._loudspeaker.finish()
                print(flush=True)
                self._said.turns.append(QuestionAndAnswer(self._question, (), self._answer))
                if failure is not None:
                    self._print(f"cantata: {failure.message}")
            case Complaint(failure):
                self._print(f"cantata: {failure.message}")
            case ConversationInterrupted():
                self._print("cantata: the connection is lost; connecting again")
            case ConversationResumed():
                self._print("cantata: connected again")

    async def _stop_playing(self, session: RealtimeSession) -> None:
        """Play no more, and tell the model what was heard."""
        heard = self._loudspeaker.stop()
        if heard is not None:
            self._stopped, seconds = heard
            await session.truncate(self._stopped, seconds)

    async def _watch_keys(self, session: RealtimeSession, stop: asyncio.Event) -> None:
        """At a terminal, Enter interrupts and Ctrl-D ends."""
        if not sys.stdin.isatty():
            return
        lines, loop = asyncio.Queue[str](), asyncio.get_running_loop()
        loop.add_reader(sys.stdin, lambda: lines.put_nowait(sys.stdin.readline()))
        try:
            while await lines.get():
                if self._is_answering:
                    await session.stop_answer()
                await self._stop_playing(session)
        finally:
            loop.remove_reader(sys.stdin)
        stop.set()

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, style="dim")


@contextmanager
def _open(options: TalkArguments, console: Console) -> Iterator[tuple[str, str | None]]:
    """The server's address, and the model there that was named."""
    if options.server is not None:
        with ask_server(options.server):
            yield options.server, options.model
        return
    with open_server(_choose_models(options, console), console) as server:
        yield server, None if options.model is None else _find_name(options.model)


def _choose_models(options: TalkArguments, console: Console) -> list[str]:
    """What answers, if there is anything, and what speaks."""
    voice = choose_voice_model(options.voice)
    if options.model is not None:
        return [options.model] if _speaks(options.model) else [options.model, voice]
    try:
        return [choose_mind(None), voice]
    except ConfigError as error:
        console.print(f"A few rules answer: {error.message}", highlight=False, markup=False)
        return [voice]


def _speaks(model: str) -> bool:
    from cantata.config.plugins import locate

    return locate(model).pipeline.makes_sound


def _find_name(model: str) -> str:
    from cantata.config.plugins import locate

    return locate(model).plugin.name
