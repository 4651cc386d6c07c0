"""`cantata chat`: a typed conversation, with a server that was named or with models served here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from cantata.cli.answer_sound import AnswerPlayer, open_sound
from cantata.cli.conversation import ChatHistory, QuestionAndAnswer, save_conversation
from cantata.cli.files import read_file, write_standard_output
from cantata.cli.own_server import choose_mind, choose_voice_model, open_server
from cantata.cli.runner import exit_on_signals
from cantata.cli.server_address import ask_server, check_address
from cantata.client import KEY_VARIABLE
from cantata.client.answers import stream_answer
from cantata.contract.data.errors import CantataError, InvalidRequest

_HELP = (
    "/reset forgets, /save FILE.md keeps, /image FILE shows. Ctrl-C stops an answer, Ctrl-D ends."
)
_PROMPT = "> "


@dataclass(frozen=True, slots=True)
class ChatArguments:
    """The command's options; None is what the model does by itself."""

    text: str
    """The only question; empty: they are typed."""
    pictures: tuple[Path, ...]
    """Shown with the first question."""
    instructions: str | None
    speaks: bool
    out: Path | None
    """A sound file."""
    voice: str | None
    max_tokens: int | None
    temperature: float | None
    seed: int | None
    model: str | None
    server: str | None

    @property
    def sounds(self) -> bool:
        """Whether answers are spoken."""
        return self.speaks or self.out is not None


def chat(options: ChatArguments, console: Console) -> None:
    """Hold the conversation. Words go to standard output, all else to the console.

    Raises:
        CantataError: there is no such model, or it cannot answer; raised before a model is loaded
            where possible.
    """
    for path in options.pictures:
        read_file(path)
    with (
        exit_on_signals(),
        open_sound(options.speaks, options.out, options.model) as sound,
        _open(options, console) as (server, model),
    ):
        talk = _Chat(options, server, model, sound, console)
        if options.text or not sys.stdin.isatty():
            talk.answer(options.text or sys.stdin.read().strip())
            return
        console.print(_HELP, highlight=False, markup=False)
        talk.converse()


class _Chat:
    def __init__(
        self,
        options: ChatArguments,
        server: str,
        model: str | None,
        sound: AnswerPlayer | None,
        console: Console,
    ) -> None:
        self._options, self._server, self._model = options, server, model
        self._sound, self._console = sound, console
        self._talk = ChatHistory(options.instructions)
        self._pictures = options.pictures

    def converse(self) -> None:
        """Answer what is typed, until Ctrl-D."""
        with suppress(ImportError):
            import readline  # noqa: F401 - `input` edits lines with it
        while True:
            try:
                line = input(_PROMPT).strip()
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                print()
                self._print("Ctrl-D ends.")
                continue
            try:
                self._run_command(line)
            except CantataError as error:
                self._print(f"cantata: {error.message}")

    def answer(self, question: str) -> None:
        """Print the answer as it comes, and keep it. Ctrl-C stops it.

        Raises:
            InvalidRequest: there is no question.
            CantataError: the server gives no answer.
        """
        if not question:
            raise InvalidRequest("nothing to answer; give a question, or type one")
        pictures, said = self._pictures, ""
        body = {**self._build_fields(), "messages": self._talk.ask(question, pictures)}
        is_stopped = False
        pieces = stream_answer(self._server, body, os.environ.get(KEY_VARIABLE))
        try:
            with ask_server(self._server), closing(pieces):
                for piece in pieces:
                    said += piece.text  # before it is shown: then Ctrl-C may come
                    with write_standard_output():
                        print(piece.text, end="")
                    if self._sound is not None and piece.pcm is not None:
                        self._sound.take(piece.pcm)
            if self._sound is not None:
                self._sound.finish()
        except KeyboardInterrupt:
            is_stopped = True
        finally:
            if self._sound is not None:
                self._sound.stop()
        print()
        if is_stopped:
            self._print("stopped")
        self._talk.turns.append(QuestionAndAnswer(question, pictures, said))
        self._pictures = ()

    def _run_command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        match word:
            case "":
                return
            case "/reset":
                self._talk.turns.clear()
                self._pictures = ()
                self._print("A new conversation.")
            case "/save" if rest:
                save_conversation(self._talk, Path(rest).expanduser())
                self._print(f"{len(self._talk.turns)} turns in {rest}")
            case "/image" if rest:
                path = Path(rest).expanduser()
                read_file(path)
                self._pictures = (*self._pictures, path)
                self._print(f"{rest} goes with the next question.")
            case _ if word.startswith("/"):
                self._print(_HELP)
            case _:
                self.answer(line)

    def _build_fields(self) -> dict[str, Any]:
        options = self._options
        named: dict[str, Any] = {
            "model": self._model,
            "max_completion_tokens": options.max_tokens,
            "temperature": options.temperature,
            "seed": options.seed,
        }
        if options.sounds:
            voice = {} if options.voice is None else {"voice": options.voice}
            named |= {"modalities": ["text", "audio"], "audio": {"format": "pcm16", **voice}}
        return {name: value for name, value in named.items() if value is not None}

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, style="dim")


@contextmanager
def _open(options: ChatArguments, console: Console) -> Iterator[tuple[str, str | None]]:
    """The server's address and the model's name there."""
    if options.server is not None:
        check_address(options.server)
        yield options.server, options.model
        return
    from cantata.config.plugins import locate

    mind = choose_mind(options.model)
    plugin = locate(mind).plugin
    if plugin.load_chat_builder is None:
        raise InvalidRequest(f"model {plugin.name!r} does not answer")
    voices = [choose_voice_model(options.voice)] if options.sounds else []
    with open_server([mind, *voices], console) as server:
        yield server, plugin.name
