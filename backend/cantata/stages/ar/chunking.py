"""What leaves an AR stage: frames and rows as chunks of their requests.

Letters: T positions, C frames of context, E columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Chunk, Codes, Payload, Rows, WordTiming
from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.contract.model.pipeline import CODES, LATENTS, ROWS
from cantata.stages.ar.frames import NewFrame, StopReason
from cantata.stages.ar.sampling import CodeLogprobs
from cantata.stages.ar.talker_step import ServedTalker


@dataclass(slots=True)
class Sending:
    """What has been sent of one request, and what leaves with its next chunk."""

    max_frames: int
    words: tuple[WordTiming, ...]
    """Not sent yet, like the next: the first chunk takes them along."""
    context: torch.Tensor | None
    """[C, ...] frames, which only prime the decoder."""
    exports_rows: bool
    num_frames: int = 0
    """Chunks so far, one frame each."""
    num_row_chunks: int = 0


class Chunking:
    """Makes one stage's chunks.

    Args:
        talker: whose frames they are.
        exports_rows: whether the stage has the port for rows.
    """

    def __init__(self, talker: ServedTalker, *, exports_rows: bool) -> None:
        self._makes_latents = bool(talker.latent_size)
        self._speaks_end = talker.speaks_end
        self._exports_rows = exports_rows
        frames = talker.talker_step.states.frames
        self._no_frame = self._convert_frames(frames[0, :0])
        self._no_row = np.zeros((0, talker.exported.shape[1]), np.float32) if exports_rows else None

    def begin(self, prompt: TalkerPrompt) -> Sending:
        """Begin a request's chunks."""
        exports = self._exports_rows and prompt.exports_rows
        return Sending(prompt.max_frames, prompt.words, prompt.context, exports)

    def frame(
        self, sending: Sending, new: NewFrame, scored: CodeLogprobs | None = None
    ) -> Chunk[Payload]:
        """A request's new frame; the last one's chunk is final.

        Args:
            sending: the request's.
            new: the frame.
            scored: the probability of its code 0; None: not asked for.
        """
        values, context_frames = new.values, 0
        index, sending.num_frames = sending.num_frames, sending.num_frames + 1
        stopped = new.ending is StopReason.END_CODE
        if stopped and not self._speaks_end:
            values = values[:0]
        final = stopped or sending.num_frames == sending.max_frames
        if sending.context is not None:
            context = self._convert_frames(sending.context)
            values, context_frames = np.concatenate([context, values]), len(context)
        words, sending.words, sending.context = sending.words, (), None
        if self._makes_latents:
            latents = Rows(values, context_frames)
            return Chunk(new.request_id, LATENTS, index, latents, final)
        probable = () if scored is None or len(values) == context_frames else (scored,)
        codes = Codes(
            values,
            context_frames,
            words,
            tuple(one.chosen for one in probable),
            tuple(one.top for one in probable if one.top),
            new.cached_positions,
        )
        return Chunk(new.request_id, CODES, index, codes, final)

    def silence(self, request_id: str) -> list[Chunk[Payload]]:
        """The only chunks of a request that has nothing to say."""
        port, payload = (LATENTS, Rows) if self._makes_latents else (CODES, Codes)
        chunks: list[Chunk[Payload]] = [Chunk(request_id, port, 0, payload(self._no_frame), True)]
        if self._no_row is not None:
            chunks.append(Chunk(request_id, ROWS, 0, Rows(self._no_row), True))
        return chunks

    def rows(
        self, request_id: str, sending: Sending, rows: NDArray[np.float32] | None, *, final: bool
    ) -> Sequence[Chunk[Payload]]:
        """[T, E] rows of the positions that this step has computed, if any leave."""
        if not sending.exports_rows or (rows is None and not final):
            return ()
        values = self._no_row if rows is None else rows
        assert values is not None
        index, sending.num_row_chunks = sending.num_row_chunks, sending.num_row_chunks + 1
        return (Chunk(request_id, ROWS, index, Rows(values), final),)

    def _convert_frames(self, frames: torch.Tensor) -> NDArray[Any]:
        """int32 codes or float32 latents."""
        values: NDArray[Any] = frames.cpu().numpy()
        return values.astype(np.float32 if self._makes_latents else np.int32)
