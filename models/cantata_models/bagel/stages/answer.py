"""The stage that answers: a piece of the conversation or a token of the answer each step, of all
answers in one forward.

Source: `gen_text` of the publisher's inferencer.py.

Letters: L tokens of pictures that are seen, D width, H height, W width, N rows, P columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload
from cantata.contract.data.errors import CantataError
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.denoiser import DenoiserOptions
from cantata_models.bagel.inputs import AnswerInput, Seen
from cantata_models.bagel.network.context import Context
from cantata_models.bagel.network.mixture import Passed, Span
from cantata_models.bagel.network.reader import Reader, load_reader
from cantata_models.bagel.ports import SEEN
from cantata_models.bagel.prompts import Texts
from cantata_models.bagel.sampling.thought import Thinker, Thought
from cantata_models.bagel.stages.arrived import rows_of
from cantata_models.bagel.stages.options import served_dtype
from cantata_models.bagel.stages.pieces import SeenPicture, Words, words


@dataclass(slots=True)
class Job:
    """One answer."""

    pieces: Sequence[Words | SeenPicture]
    """Of the conversation."""
    thought: Thought
    """Its context grows while the conversation is read."""
    read: int = 0
    """Pieces."""
    said: tuple[int, ...] = ()
    """The token of the last step; empty: it read, or the answer has ended."""

    @property
    def reads(self) -> bool:
        """Whether the next step reads."""
        return self.read < len(self.pieces)

    def span(self, reader: Reader) -> Span:
        """What the next step asks."""
        if self.reads:
            return self.pieces[self.read].span(reader, self.thought.context)
        return reader.text_span(self.thought.context, [self.thought.next_token])

    def grown(self, reader: Reader, passed: Passed) -> Thought:
        """The answer behind that step."""
        if self.reads:
            start = self.pieces[self.read].read(self.thought.context, passed)
            return replace(self.thought, thinker=replace(self.thought.thinker, start=start))
        return self.thought.grown(passed.block, reader.words.scores(passed.plain[0]))


class Answerer:
    """Implements `contract.model.denoiser.Writer`.

    Args:
        reader: the network.
        texts: the tokenizer of the same checkpoint.
    """

    def __init__(self, reader: Reader, texts: Texts) -> None:
        self._reader, self._texts = reader, texts

    def awaits(self, inputs: AnswerInput) -> Collection[str]:
        """Pictures as they are seen."""
        return (SEEN,) if _lengths(inputs) else ()

    @torch.inference_mode()
    def begin(self, inputs: AnswerInput, arrived: Mapping[str, Payload]) -> Job:
        """An answer whose conversation is still to be read.

        Raises:
            RequestFailed: what arrived is not what was announced.
        """
        lengths = _lengths(inputs)
        seen = iter(rows_of(arrived, SEEN, lengths) if lengths else ())
        pieces: list[Words | SeenPicture] = []
        for part in inputs.parts:
            pieces += [SeenPicture(next(seen))] if isinstance(part, Seen) else words(part)
        thinker = Thinker(Context(), self._texts.end, inputs.most, inputs.temperature, inputs.seed)
        return Job(pieces, Thought(thinker, self._texts.begin))

    def steps(self, job: Job) -> int:
        """Pieces of the conversation, tokens of the answer, and its end; fewer, once it has ended
        early."""
        return len(job.pieces) + job.thought.computed + job.thought.left

    def previews(self, job: Job) -> int:
        """There are none."""
        return 0

    def size(self, job: Job) -> ForwardSize:
        """Of a piece, or of one token."""
        return job.thought.context.size(job.pieces[job.read].length if job.reads else 1)

    def group(self, job: Job) -> None:
        """Any answers share a forward."""
        return

    @torch.inference_mode()
    def advance(self, jobs: Sequence[Job]) -> Sequence[CantataError | None]:
        """A piece or a token of each, in one forward."""
        passed = self._reader.run([job.span(self._reader) for job in jobs])
        grown = [job.grown(self._reader, one) for job, one in zip(jobs, passed, strict=True)]
        # From here on nothing fails: either all jobs advance, or none.
        for job, thought in zip(jobs, grown, strict=True):
            ended = thought.next_token == self._texts.end
            job.said = () if job.reads or ended else (thought.next_token,)
            job.read, job.thought = job.read + job.reads, thought
        return [None] * len(jobs)

    def written(self, job: Job) -> NDArray[np.int32]:
        """[1] the last token; [0] if there is none."""
        return np.array(job.said, np.int32)

    def preview(self, job: Job) -> NDArray[np.uint8]:
        """[0, 0, 3]: there is nothing to see."""
        return np.zeros((0, 0, 3), np.uint8)

    def latents(self, job: Job) -> NDArray[np.float32]:
        """[0, 0]: there are none."""
        return np.zeros((0, 0), np.float32)


def load_answerer(checkpoint: Path, options: DenoiserOptions) -> Answerer:
    """Return a checkpoint's answerer.

    Raises:
        ConfigError: weights are missing or of another shape, or an option is not served.
    """
    dtype = served_dtype(options)
    texts, device = Texts(checkpoint), torch.device(options.device)
    return Answerer(load_reader(checkpoint, device, dtype, texts.around_picture), texts)


def _lengths(inputs: AnswerInput) -> list[int]:
    """Tokens of each picture."""
    return [part.tokens for part in inputs.parts if isinstance(part, Seen)]
