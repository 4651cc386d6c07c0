"""A typed conversation: what was asked and answered, as a request and as Markdown."""

from __future__ import annotations

import base64
import mimetypes
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cantata.cli.files import read_file
from cantata.contract.data.errors import InvalidRequest
from cantata.utils.atomic_file import write_whole


@dataclass(frozen=True, slots=True)
class QuestionAndAnswer:
    question: str
    pictures: tuple[Path, ...]
    answer: str
    """As far as it came."""


@dataclass(slots=True)
class ChatHistory:
    instructions: str | None
    turns: list[QuestionAndAnswer] = field(default_factory=list)

    def ask(self, question: str, pictures: tuple[Path, ...]) -> list[dict[str, Any]]:
        """The messages of a request for the next answer. Raises FileError: a picture cannot be
        read."""
        system = [] if self.instructions is None else [_build_message("system", self.instructions)]
        earlier = [
            message
            for turn in self.turns
            for message in (
                _build_question(turn.question, turn.pictures),
                _build_message("assistant", turn.answer),
            )
        ]
        return [*system, *earlier, _build_question(question, pictures)]

    def write(self) -> str:
        """The conversation in Markdown."""
        parts = [] if self.instructions is None else [f"> {self.instructions}"]
        for turn in self.turns:
            shown = [f"![]({path})" for path in turn.pictures]
            parts += ["## You", *shown, turn.question, "## Answer", turn.answer]
        return "\n\n".join(parts) + "\n"


def save_conversation(conversation: ChatHistory, path: Path) -> None:
    """Write it to a Markdown file, whole or not at all. Raises InvalidRequest: it cannot be written
    there."""
    with write_whole(path) as unfinished:
        try:
            unfinished.write_text(conversation.write(), "utf-8")
        except OSError as error:
            raise InvalidRequest(f"{path}: cannot be written ({error.strerror})") from error


def _build_message(role: str, content: object) -> dict[str, Any]:
    return {"role": role, "content": content}


def _build_question(text: str, pictures: tuple[Path, ...]) -> dict[str, Any]:
    if not pictures:
        return _build_message("user", text)
    shown = [{"type": "image_url", "image_url": {"url": _as_url(path)}} for path in pictures]
    return _build_message("user", [*shown, {"type": "text", "text": text}])


def _as_url(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "image/png"
    return f"data:{kind};base64,{base64.b64encode(read_file(path)).decode()}"
