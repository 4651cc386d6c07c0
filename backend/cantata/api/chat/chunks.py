"""The server-sent events of one answer."""

from __future__ import annotations

from cantata.api.chat.answers import (
    ChatCompletionChunk,
    ChatUsage,
    ChunkChoice,
    Delta,
    FinishReason,
)
from cantata.api.speech.framing import sse_event

DONE = b"data: [DONE]\n\n"


class Chunks:
    """Writes them.

    Args:
        completion_id: of the answer, as the next.
        created: Unix time.
        model: its name.
    """

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        self._completion_id, self._created, self._model = completion_id, created, model

    def delta(self, delta: Delta, reason: FinishReason | None = None) -> bytes:
        """More of the answer."""
        return self._chunk([ChunkChoice(delta=delta, finish_reason=reason)], None)

    def end(self, reason: FinishReason, usage: ChatUsage | None) -> bytes:
        """Why it has ended, what it cost if that was asked for, and the end of the stream."""
        usage_chunk = b"" if usage is None else self._chunk([], usage)
        return self.delta(Delta(), reason) + usage_chunk + DONE

    def _chunk(self, choices: list[ChunkChoice], usage: ChatUsage | None) -> bytes:
        return sse_event(
            ChatCompletionChunk(
                id=self._completion_id,
                created=self._created,
                model=self._model,
                choices=choices,
                usage=usage,
            )
        )
