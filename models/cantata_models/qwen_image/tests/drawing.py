"""Draws as the server does, step by step in this process.

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

from cantata.contract.data.chunks import Image, Payload, Rows
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.model.denoiser import DenoiserOptions
from cantata.contract.model.feed_forward import Fed
from cantata.contract.model.pipeline import LATENTS
from cantata_layers.qwen_image.stages.autoencoder import (
    load_latent_decoder,
    load_reference_encoder,
)
from cantata_layers.qwen_image.stages.builder import PictureBuilder
from cantata_layers.qwen_image.stages.denoise import PictureInProgress, load_picture_denoiser
from cantata_layers.qwen_image.stages.encode import load_prompt_encoder
from cantata_layers.qwen_image.stages.pipeline import (
    DECODE,
    DENOISE,
    ENCODE,
    IMAGE,
    REFERENCES_STAGE,
)
from cantata_models.qwen_image.tests.parity.scenarios import AREAS

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Drawn:
    """One picture, and what was made on the way."""

    arrived: Mapping[str, Payload]
    """By port, of the encoders."""
    latents: NDArray[np.float32]
    """[steps, N, P] after each step."""
    pixels: NDArray[np.uint8]
    """[H, W, 3]"""

    def rows(self, port: str) -> NDArray[np.float32]:
        """What an encoder made."""
        payload = self.arrived[port]
        assert isinstance(payload, Rows)
        return payload.values


class Studio:
    """A checkpoint's builder and stages."""

    def __init__(self, checkpoint: Path) -> None:
        self.builder = PictureBuilder(checkpoint, areas=AREAS)
        self.encoder = load_prompt_encoder(checkpoint, CPU)
        self.references = load_reference_encoder(checkpoint, CPU)
        self.denoiser = load_picture_denoiser(checkpoint, DenoiserOptions("cpu", "float32"))
        self.decoder = load_latent_decoder(checkpoint, CPU)

    def draw(self, request: ImageRequest) -> Drawn:
        """Draw a picture by itself."""
        return self.draw_together([request])[0]

    def draw_together(self, requests: Sequence[ImageRequest]) -> list[Drawn]:
        """Draw pictures in forwards that they share, as long as each has steps left."""
        inputs = [self.inputs(request) for request in requests]
        arrived = [self.encoded(given) for given in inputs]
        jobs = [
            self.denoiser.begin(given[DENOISE], made)
            for given, made in zip(inputs, arrived, strict=True)
        ]
        steps: list[list[NDArray[np.float32]]] = [[] for _ in jobs]
        while unfinished := [job for job in jobs if job.step < self.denoiser.steps(job)]:
            assert self.denoiser.advance(unfinished) == [None] * len(unfinished)
            for job, after in zip(jobs, steps, strict=True):
                if any(job is advanced for advanced in unfinished):
                    after.append(self.denoiser.latents(job))
        return [
            Drawn(made, np.stack(after), self.decoded(given[DECODE], job))
            for given, made, after, job in zip(inputs, arrived, steps, jobs, strict=True)
        ]

    def inputs(self, request: ImageRequest) -> Mapping[str, Any]:
        """By stage."""
        return self.builder.build("a", request).request.inputs

    def encoded(self, inputs: Mapping[str, Any]) -> dict[str, Payload]:
        """What the encoders make of a request's inputs."""
        made = _only(self.encoder.run([inputs[ENCODE]]))
        if REFERENCES_STAGE in inputs:
            made |= _only(self.references.run([inputs[REFERENCES_STAGE]]))
        return made

    def decoded(self, inputs: Any, job: PictureInProgress) -> NDArray[np.uint8]:
        """The picture of a finished job."""
        fed = Fed(inputs, {LATENTS: Rows(self.denoiser.latents(job))})
        image = _only(self.decoder.run([fed]))[IMAGE]
        assert isinstance(image, Image)
        return image.pixels


def _only(outputs: Sequence[Any]) -> dict[str, Payload]:
    (output,) = outputs
    return dict(output)
