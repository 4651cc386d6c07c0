"""The stage that draws and answers: one network, jobs of any size, depth and phase in each forward.

Letters: L tokens of pictures that are seen, N of latents, P numbers of such a token, D width, H
height, W width.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload
from cantata.contract.data.errors import CantataError, ConfigError
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.denoiser import DenoiserOptions
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.sampling import PreviewColours, finished, fit_preview
from cantata_models.bagel.config import PIXELS_PER_LATENT
from cantata_models.bagel.context_segments import (
    ContextSegment,
    KeptPicture,
    SeenPicture,
    make_rows,
    words,
)
from cantata_models.bagel.drawing import DrawingPhase, JobPhase, PicturePhase, ReadingPhase
from cantata_models.bagel.inputs import AnswerInput, DrawInput, ReferenceGrids
from cantata_models.bagel.language_model import Context, ForwardOutput
from cantata_models.bagel.plugin import REFERENCES, SEEN
from cantata_models.bagel.prompt import BagelTokenizer
from cantata_models.bagel.reader import Reader, load_reader
from cantata_models.bagel.vae import BagelPictureEncoder, draw_noise, to_latents
from cantata_models.bagel.writing import Thinker, awaited_by_answer, begin_answer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""The model was trained in the latter."""


def served_dtype(options: DenoiserOptions) -> torch.dtype:
    """The dtype of the weights. Raises ConfigError: it, or another option, is not served."""
    if options.dtype not in DTYPES:
        raise ConfigError(f"dtype {options.dtype} is not served; valid: {', '.join(DTYPES)}")
    given = {"cache": options.skipping, "parallel": options.ranks, "hooked": options.hooked}
    if unserved := [name for name, value in given.items() if value is not None]:
        raise ConfigError(f"{', '.join(unserved)}: not served by this model; valid: none of them")
    return DTYPES[options.dtype]


@dataclass(slots=True)
class BagelJob:
    """A job that answers or draws."""

    phase: JobPhase
    done: int = 0


@dataclass(slots=True, kw_only=True)
class PictureJob(BagelJob):
    inputs: DrawInput
    phase: PicturePhase


class BagelDenoiser:
    """Implements `contract.model.denoiser.Writer`: it writes answers, and thoughts before pictures.

    Args:
        texts: the tokenizer of the same checkpoint.
        numbers: P.
    """

    def __init__(
        self, reader: Reader, texts: BagelTokenizer, colours: PreviewColours, numbers: int
    ) -> None:
        self._reader, self._texts = reader, texts
        self._colours, self._numbers = colours, numbers

    def draws(self, inputs: DrawInput | AnswerInput) -> bool:
        return isinstance(inputs, DrawInput)

    def awaits(self, inputs: DrawInput | AnswerInput) -> Collection[str]:
        if isinstance(inputs, AnswerInput):
            return awaited_by_answer(inputs)
        return (SEEN, REFERENCES) if inputs.references else ()

    @torch.inference_mode()
    def begin(self, inputs: DrawInput | AnswerInput, arrived: Mapping[str, Payload]) -> BagelJob:
        """A job with everything before the answer or the picture still to be read. Raises
        RequestFailed: what arrived is not what was announced."""
        if isinstance(inputs, AnswerInput):
            return BagelJob(begin_answer(inputs, arrived, self._texts))
        return self._begin_picture(inputs, arrived)

    def _begin_picture(self, inputs: DrawInput, arrived: Mapping[str, Payload]) -> PictureJob:
        grid, kept = Grid(*inputs.grid), _list_grids(inputs)
        noise = draw_noise(inputs.seed, grid, kept, self._numbers).to(self._reader.device)
        places = self._reader.places(grid)
        drawing = DrawingPhase({}, inputs.times, inputs.guidance, places, noise)
        segments, prompt_at = _list_segments(inputs, arrived)
        phase = ReadingPhase(segments, prompt_at, drawing, self._make_thinker(inputs), self._texts)
        return PictureJob(phase=phase, inputs=inputs)

    def steps(self, job: BagelJob) -> int:
        """Return the most steps of a job: of reading, writing and drawing. It falls when a text
        ends early."""
        return job.done + job.phase.steps_left

    def previews(self, job: BagelJob) -> int:
        return job.inputs.previews if isinstance(job, PictureJob) else 0

    def size(self, job: BagelJob) -> ForwardSize:
        return job.phase.size()

    def group(self, job: BagelJob) -> None:
        """Any jobs share a forward."""
        return

    @torch.inference_mode()
    def advance(self, jobs: Sequence[BagelJob]) -> Sequence[CantataError | None]:
        """One step of each job, in one forward."""
        asked = [job.phase.spans(self._reader) for job in jobs]
        passed = iter(self._reader.run([span for spans in asked for span in spans]))
        answers: list[list[ForwardOutput]] = [[next(passed) for _ in spans] for spans in asked]
        pairs = zip(jobs, answers, strict=True)
        phases = [job.phase.after(self._reader, answer) for job, answer in pairs]
        # From here on nothing fails: either all jobs advance, or none.
        for job, phase in zip(jobs, phases, strict=True):
            job.phase, job.done = phase, job.done + 1
        return [None] * len(jobs)

    def written(self, job: BagelJob) -> NDArray[np.int32]:
        """[1] the token that was written last; [0]: none."""
        return np.array(job.phase.text_tokens, np.int32)

    def preview(self, job: PictureJob) -> NDArray[np.uint8]:
        """[H, W, 3], a pixel for each place of a latent."""
        drawing = job.phase.drawing
        foreseen = (
            torch.zeros_like(drawing.latents)
            if drawing.velocity is None
            else finished(drawing.latents, drawing.velocity, drawing.time)
        )
        return self._colours.picture(to_latents(foreseen, Grid(*job.inputs.grid)))

    def latents(self, job: PictureJob) -> NDArray[np.float32]:
        """Return the latents, [N, P]."""
        values: NDArray[np.float32] = job.phase.drawing.latents.float().cpu().numpy()
        return values

    def _make_thinker(self, inputs: DrawInput) -> Thinker | None:
        asked = inputs.thought
        if asked is None:
            return None
        return Thinker(Context(), self._texts.end, asked.max_tokens, asked.temperature, inputs.seed)


def load_denoiser(checkpoint: Path, options: DenoiserOptions) -> BagelDenoiser:
    """Return a checkpoint's denoiser. Raises ConfigError: weights are missing or of another shape,
    or an option is not served."""
    dtype = served_dtype(options)
    texts, device = BagelTokenizer(checkpoint), torch.device(options.device)
    reader = load_reader(checkpoint, device, dtype, texts.around_picture)
    # The encoder is loaded only for this: no picture passes here.
    colours = fit_preview(BagelPictureEncoder(checkpoint, device), PIXELS_PER_LATENT)
    return BagelDenoiser(reader, texts, colours, reader.latents.out.out_features)


def _list_grids(inputs: DrawInput) -> list[Grid]:
    """Return the grid of each picture's latents."""
    return [Grid(*reference.kept) for reference in inputs.references]


def _list_segments(
    inputs: DrawInput, arrived: Mapping[str, Payload]
) -> tuple[list[ContextSegment], int]:
    """What is to be read, and how much of it stands before the prompt. Each picture stands there
    twice: as latents, then as it is seen."""
    kept = _list_grids(inputs)
    seen = [Grid(*reference.seen).tokens for reference in inputs.references]
    latents = iter(make_rows(arrived, REFERENCES, [grid.tokens for grid in kept]) if kept else ())
    sights, grids = iter(make_rows(arrived, SEEN, seen) if kept else ()), iter(kept)
    segments: list[ContextSegment] = []
    prompt_at = 0
    for part in inputs.parts:
        if isinstance(part, ReferenceGrids):
            segments += [KeptPicture(next(latents), next(grids)), SeenPicture(next(sights))]
        else:
            prompt_at = len(segments)
            segments += words(part)
    return segments, prompt_at
