"""The tiny painter's networks."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Image, Payload, Rows
from cantata.contract.data.errors import CantataError, RequestFailed
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.denoiser import DenoiserOptions
from cantata.contract.model.feed_forward import Fed
from tiny_painter.inputs import CELL, TinyCanvas, TinyPrompt, TinyReferences, TinySize

CHANNELS = 3


class TinyTextEncoder:
    """Implements `contract.model.feed_forward.FeedForward`: a row for each letter."""

    def key(self, inputs: TinyPrompt) -> bytes:
        return hashlib.sha256(inputs.text.encode()).digest()

    def run(self, batch: Sequence[TinyPrompt]) -> Sequence[Mapping[str, Payload]]:
        return [{"condition": Rows(self._encode(prompt.text))} for prompt in batch]

    def _encode(self, text: str) -> NDArray[np.float32]:
        letters = np.array([ord(letter) for letter in text or " "], np.float32)
        return np.sin(letters[:, None] * np.arange(1, CHANNELS + 1, dtype=np.float32))


class TinyReferenceEncoder:
    """Implements `contract.model.feed_forward.FeedForward`: the mean colour of each picture."""

    def key(self, inputs: TinyReferences) -> None:
        return None

    def run(self, batch: Sequence[TinyReferences]) -> Sequence[Mapping[str, Payload]]:
        return [
            {
                "references": Rows(
                    np.stack([p.reshape(-1, 3).mean(axis=0) / 255 for p in inputs.pictures]).astype(
                        np.float32
                    )
                )
            }
            for inputs in batch
        ]


@dataclass
class TinyJob:
    """The state of one picture."""

    canvas: TinyCanvas
    latents: NDArray[np.float32]
    wanted: NDArray[np.float32]
    done: int = 0


class TinyDenoiser:
    """Implements `contract.model.denoiser.Denoiser`: each step goes a part of the way from noise to
    the prompt's colour.

    Args:
        forward_s: what every forward takes, whatever is in it.
    """

    def __init__(self, forward_s: float = 0.0) -> None:
        self._forward_s = forward_s
        self.forwards: list[list[int]] = []
        """The seeds of each."""

    def awaits(self, inputs: TinyCanvas) -> tuple[str, ...]:
        if inputs.fault == "UNREADABLE":
            raise ValueError("no canvas")
        return ("condition", "references") if inputs.has_references else ("condition",)

    def begin(self, inputs: TinyCanvas, arrived: Mapping[str, Payload]) -> TinyJob:
        if inputs.fault == "UNWILLING":
            raise RequestFailed("this cannot be drawn")
        wanted = sum(p.values.mean(axis=0) for p in arrived.values() if isinstance(p, Rows))
        noise = np.random.default_rng(inputs.seed).standard_normal((inputs.tokens, CHANNELS))
        return TinyJob(inputs, noise.astype(np.float32), np.asarray(wanted, np.float32))

    def steps(self, job: TinyJob) -> int:
        return job.canvas.steps

    def previews(self, job: TinyJob) -> int:
        return job.canvas.previews

    def size(self, job: TinyJob) -> ForwardSize:
        return forward_size(job.canvas)

    def group(self, job: TinyJob) -> None:
        return None

    def advance(self, jobs: Sequence[TinyJob]) -> Sequence[CantataError | None]:
        self.forwards.append([job.canvas.seed for job in jobs])
        time.sleep(self._forward_s + sum(job.canvas.step_s for job in jobs))
        for job in jobs:
            match job.canvas.fault:
                case "CRASH":
                    raise ValueError("overflow")
                case "FATAL" if job.done == 1:
                    os._exit(3)
        return [self._step(job) for job in jobs]

    def preview(self, job: TinyJob) -> NDArray[np.uint8]:
        grid = (job.canvas.height // CELL, job.canvas.width // CELL, CHANNELS)
        return _pixels(job.latents).reshape(grid)

    def latents(self, job: TinyJob) -> NDArray[np.float32]:
        return job.latents

    def _step(self, job: TinyJob) -> CantataError | None:
        if job.canvas.fault == "REFUSED" and job.done == 1:
            return RequestFailed("the second step failed")
        share = 1.0 / (job.canvas.steps - job.done + 1)
        wanted = job.wanted * job.canvas.guidance
        job.latents = job.latents + np.float32(share) * (wanted - job.latents)
        if job.canvas.fault == "NAN":
            job.latents[0] = np.nan
        job.done += 1
        return None


class TinyDecoder:
    """Implements `FeedForward` and `FedFeedForward`: a square of colour for each token."""

    def awaits(self, inputs: TinySize) -> tuple[str, ...]:
        return ("latents",)

    def key(self, inputs: Fed) -> None:
        return None

    def run(self, batch: Sequence[Fed]) -> Sequence[Mapping[str, Payload]]:
        return [{"image": Image(self._decode(fed))} for fed in batch]

    def _decode(self, fed: Fed) -> NDArray[np.uint8]:
        latents = fed.arrived["latents"]
        assert isinstance(latents, Rows)
        grid = (fed.inputs.height // CELL, fed.inputs.width // CELL, CHANNELS)
        cells = _finished(_pixels(latents.values).reshape(grid), fed.inputs)
        return cells.repeat(CELL, axis=0).repeat(CELL, axis=1)


def forward_size(canvas: TinyCanvas) -> ForwardSize:
    """Of one step: two branches if it is guided."""
    branches = 2 if canvas.guidance > 1 else 1
    return ForwardSize(branches * canvas.tokens, branches * canvas.tokens**2)


def _finished(cells: NDArray[np.uint8], how: TinySize) -> NDArray[np.uint8]:
    """As the request's own options say."""
    darker = (cells * np.float32(1 - how.shade)).astype(np.uint8)
    inked = darker if how.ink == "colour" else np.broadcast_to(darker[..., :1], darker.shape)
    return inked[:, ::-1] if how.mirrored else inked


def _pixels(latents: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.clip(128 + 100 * latents, 0, 255).astype(np.uint8)


def load_text_encoder(checkpoint: Path, device: torch.device) -> TinyTextEncoder:
    """The factory that the pipeline names, as are the next ones."""
    return TinyTextEncoder()


def load_reference_encoder(checkpoint: Path, device: torch.device) -> TinyReferenceEncoder:
    return TinyReferenceEncoder()


def load_denoiser(checkpoint: Path, options: DenoiserOptions) -> TinyDenoiser:
    return TinyDenoiser(forward_s=0.002)


def load_decoder(checkpoint: Path, device: torch.device) -> TinyDecoder:
    return TinyDecoder()
