"""Draws and answers as the server does, step by step in this process.

Letters: N tokens of a picture, P numbers of a token, H height, W width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chat import ChatRequest
from cantata.contract.data.chunks import Image, Payload, Rows
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.model.denoiser import DenoiserOptions
from cantata.contract.model.feed_forward import Fed, FeedForward
from cantata.contract.model.pipeline import LATENTS
from cantata_models.bagel.chat_builder import BagelChatBuilder
from cantata_models.bagel.denoiser import BagelJob, PictureJob, load_denoiser
from cantata_models.bagel.drawing import RememberingPhase
from cantata_models.bagel.picture_builder import BagelPictureBuilder
from cantata_models.bagel.picture_stages import (
    load_eyes,
    load_latent_decoder,
    load_reference_encoder,
)
from cantata_models.bagel.plugin import DECODE, DENOISE, IMAGE, REFERENCES_STAGE, SEE
from cantata_models.bagel.tests.parity.scenarios import SIZES

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Drawn:
    """One picture, and what was made on the way."""

    latents: NDArray[np.float32]
    """[steps + 1, N, P]: the noise, then after each step of drawing."""
    pixels: NDArray[np.uint8]
    """[H, W, 3]"""
    thought: tuple[int, ...] | None
    """Tokens of its text; None: nothing was thought."""


class Studio:
    """A checkpoint's builders and stages."""

    def __init__(self, checkpoint: Path) -> None:
        self.builder = BagelPictureBuilder(checkpoint, SIZES)
        self.answers = BagelChatBuilder(checkpoint, SIZES)
        self.eyes = load_eyes(checkpoint, CPU)
        self.references = load_reference_encoder(checkpoint, CPU)
        self.denoiser = load_denoiser(checkpoint, DenoiserOptions("cpu", "float32"))
        self.decoder = load_latent_decoder(checkpoint, CPU)

    def draw(self, request: ImageRequest) -> Drawn:
        """Draw a picture by itself."""
        return self.draw_together([request])[0]

    def draw_together(self, requests: Sequence[ImageRequest]) -> list[Drawn]:
        """Draw pictures in forwards that they share, as long as each has steps left."""
        inputs = [self.inputs(request) for request in requests]
        jobs = [self.begin(given) for given in inputs]
        latents = [[self.denoiser.latents(job)] for job in jobs]
        thoughts: list[tuple[int, ...] | None] = [None] * len(jobs)
        while any(job.phase.steps_left for job in jobs):
            unfinished = [job for job in jobs if job.phase.steps_left]
            drawn = [job.phase.drawing.step for job in jobs]
            assert self.denoiser.advance(unfinished) == [None] * len(unfinished)
            for number, job in enumerate(jobs):
                if job.phase.drawing.step > drawn[number]:
                    latents[number].append(self.denoiser.latents(job))
                if isinstance(job.phase, RememberingPhase):
                    thoughts[number] = job.phase.text
        return [
            Drawn(np.stack(after), self.decoded(given[DECODE], job), thought)
            for given, after, job, thought in zip(inputs, latents, jobs, thoughts, strict=True)
        ]

    def begin(self, inputs: Mapping[str, Any]) -> PictureJob:
        """A picture's job."""
        job = self.denoiser.begin(inputs[DENOISE], self.encoded(inputs))
        assert isinstance(job, PictureJob)
        return job

    def begin_answer(self, request: ChatRequest) -> BagelJob:
        """An answer's job."""
        inputs: Mapping[str, Any] = self.answers.build("a", request).request.inputs
        return self.denoiser.begin(inputs[DENOISE], self.encoded(inputs))

    def finish(self, jobs: Sequence[BagelJob]) -> list[NDArray[Any]]:
        """Latents [N, P] of pictures, tokens [T] of answers, made in forwards that they share, as
        long as each has steps left."""
        written: list[list[NDArray[np.int32]]] = [[] for _ in jobs]
        while left := [n for n, job in enumerate(jobs) if job.phase.steps_left]:
            assert self.denoiser.advance([jobs[n] for n in left]) == [None] * len(left)
            for number in left:
                written[number].append(self.denoiser.written(jobs[number]))
        return [
            self.denoiser.latents(job) if isinstance(job, PictureJob) else np.concatenate(tokens)
            for job, tokens in zip(jobs, written, strict=True)
        ]

    def inputs(self, request: ImageRequest) -> Mapping[str, Any]:
        """By stage."""
        return self.builder.build("a", request).request.inputs

    def encoded(self, inputs: Mapping[str, Any]) -> dict[str, Payload]:
        """What the encoders make of a request's inputs."""
        stages: dict[str, FeedForward] = {SEE: self.eyes, REFERENCES_STAGE: self.references}
        made: dict[str, Payload] = {}
        for name, stage in stages.items():
            if name in inputs:
                made |= _only(stage.run([inputs[name]]))
        return made

    def decoded(self, inputs: Any, job: PictureJob) -> NDArray[np.uint8]:
        """The picture of a finished job."""
        fed = Fed(inputs, {LATENTS: Rows(self.denoiser.latents(job))})
        image = _only(self.decoder.run([fed]))[IMAGE]
        assert isinstance(image, Image)
        return image.pixels


def _only(outputs: Sequence[Any]) -> dict[str, Payload]:
    (output,) = outputs
    return dict(output)
