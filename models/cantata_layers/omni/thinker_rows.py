"""A thinker's input rows: a conversation's tokens, with the encoders' rows among them.

Letters: P tokens of a prompt, M of them of media, D hidden size, W width of an input row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cantata.contract.data.chunks import Payload, Rows, to_array
from cantata.contract.data.errors import ContextFull
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    TalkerPrompt,
)
from cantata_layers.omni.inputs import ThinkerInput


@dataclass(frozen=True, slots=True)
class ThinkerRows:
    """Where the rows of a thinker's requests come from."""

    embed: Callable[[torch.Tensor], torch.Tensor]
    """[P, 1] int64 tokens, on `device` -> [P, D]: the talker's `embed_frames`."""
    device: torch.device
    row_width: int
    """W"""
    max_positions: int
    """Of a conversation with its answer."""
    widen: Callable[[torch.Tensor], torch.Tensor] | None = None
    """[M, D] encoders' rows -> [M, W]; None: they come as wide as that."""
    option: str = "messages"
    """The request's option that a prompt is made of, for messages."""

    def open(self, inputs: ThinkerInput) -> EmbeddingSource:
        """Begin at once, or when the rows of media have come. Raises ContextFull: the prompt leaves
        no room for an answer."""
        room = self.max_positions - len(inputs.tokens)
        if room < 1:
            raise ContextFull(
                f"the prompt has {len(inputs.tokens)} tokens; this deployment has room for "
                f"{self.max_positions} with the answer",
                self.option,
            )
        if not len(inputs.media):
            return StaticEmbeddings(self._build_prompt(inputs, room, None))

        def begin(encoded: Sequence[Payload]) -> EmbeddingSource:
            media = torch.from_numpy(to_array(encoded[0]))
            return StaticEmbeddings(self._build_prompt(inputs, room, media))

        return DeferredRows((Rows,), begin)

    def _build_prompt(
        self, inputs: ThinkerInput, room: int, media: torch.Tensor | None
    ) -> TalkerPrompt:
        """The prompt, and a row of zeros under the answer's tokens."""
        tokens = torch.from_numpy(inputs.tokens.astype("i8")).to(self.device)
        embedded = self.embed(tokens[:, None])
        rows = embedded.new_zeros(len(tokens) + 1, self.row_width)
        rows[:-1, : embedded.shape[1]] = embedded
        if media is not None:
            wide = media if self.widen is None else self.widen(media)
            rows[torch.from_numpy(inputs.media.astype("i8"))] = wide.to(rows)
        return TalkerPrompt(
            rows=rows,
            prompt_len=len(tokens),
            max_frames=room if inputs.max_tokens is None else min(inputs.max_tokens, room),
            sampling=inputs.sampling,
            positions=None if inputs.positions is None else torch.from_numpy(inputs.positions),
            token_ids=torch.from_numpy(inputs.identities.astype("i8")),
            exports_rows=inputs.exports_rows,
        )
