"""The server-sent events of one answer."""

from __future__ import annotations

from cantata.api.chat.answers import (
    ChatCompletionChunk,
    ChatUsage,
    ChoiceLogprobs,
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

    def delta(
        self,
        delta: Delta,
        reason: FinishReason | None = None,
        *,
        index: int = 0,
        logprobs: ChoiceLogprobs | None = None,
        usage: ChatUsage | None = None,
    ) -> bytes:
        """More of the answer with that index, or why it has ended."""
        choice = ChunkChoice(index=index, delta=delta, logprobs=logprobs, finish_reason=reason)
        return self._chunk([choice], usage)

    def end(self, reason: FinishReason, usage: ChatUsage | None) -> bytes:
        """Why the only answer has ended, and the end of the stream."""
        return self.delta(Delta(), reason) + self.close(usage)

    def close(self, usage: ChatUsage | None) -> bytes:
        """What it cost if that was asked for, and the end of the stream."""
        return (b"" if usage is None else self._chunk([], usage)) + DONE

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
