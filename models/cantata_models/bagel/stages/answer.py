"""The stage that answers: one token a step, of all answers in one forward.

Source: `gen_text` of the publisher's inferencer.py.

Letters: L tokens of pictures that are seen, D width, H height, W width, N rows, P columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
from cantata_models.bagel.network.reader import Reader, load_reader
from cantata_models.bagel.ports import SEEN
from cantata_models.bagel.prompts import Texts
from cantata_models.bagel.sampling.thought import Thinker, Thought
from cantata_models.bagel.stages.arrived import rows_of
from cantata_models.bagel.stages.options import served_dtype


@dataclass(slots=True)
class Job:
    """One answer."""

    thought: Thought


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
        """Read the conversation.

        Raises:
            RequestFailed: what arrived is not what was announced.
        """
        lengths = _lengths(inputs)
        seen = iter(rows_of(arrived, SEEN, lengths) if lengths else ())
        context = Context()
        for part in inputs.parts:
            if isinstance(part, Seen):
                context = self._reader.read_seen(context, next(seen))
            else:
                context = self._reader.read_text(context, part)
        thinker = Thinker(context, self._texts.end, inputs.most, inputs.temperature, inputs.seed)
        return Job(Thought(thinker, self._texts.begin))

    def steps(self, job: Job) -> int:
        """Tokens of the answer, and its end; fewer, once it has ended early."""
        return job.thought.computed + job.thought.left

    def previews(self, job: Job) -> int:
        """There are none."""
        return 0

    def size(self, job: Job) -> ForwardSize:
        """Of one token."""
        return ForwardSize(1, job.thought.context.tokens + 1)

    def group(self, job: Job) -> None:
        """Any answers share a forward."""
        return

    @torch.inference_mode()
    def advance(self, jobs: Sequence[Job]) -> Sequence[CantataError | None]:
        """One token of each answer, in one forward."""
        thoughts = [job.thought for job in jobs]
        spans = [self._reader.text_span(t.context, [t.next_token]) for t in thoughts]
        passed = self._reader.run(spans)
        grown = [
            thought.grown(one.block, self._reader.words.scores(one.plain[0]))
            for thought, one in zip(thoughts, passed, strict=True)
        ]
        # From here on nothing fails: either all jobs advance, or none.
        for job, thought in zip(jobs, grown, strict=True):
            job.thought = thought
        return [None] * len(jobs)

    def written(self, job: Job) -> NDArray[np.int32]:
        """[1] the last token; [0] if that is the end."""
        token = job.thought.next_token
        return np.array([] if token == self._texts.end else [token], np.int32)

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
