"""The stages around the language model: pictures to tokens, and tokens to pictures.

Letters: L patches of all pictures, D width of the language model, N tokens, P numbers of a token.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Image, Payload, Rows
from cantata.contract.data.errors import CantataError, RequestFailed
from cantata.contract.model.feed_forward import Fed, hash_pictures
from cantata.contract.model.pipeline import LATENTS
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.numerics import dtype_on
from cantata_models.bagel.config import PIXELS_PER_TOKEN, load_config
from cantata_models.bagel.inputs import BagelDecodeInput, BagelReferenceInput, VisionInput
from cantata_models.bagel.plugin import IMAGE, REFERENCES, SEEN
from cantata_models.bagel.reader import load_vision
from cantata_models.bagel.vae import (
    BagelPictureDecoder,
    BagelPictureEncoder,
    draw_references,
    to_latents,
    to_planes,
    to_tokens,
)
from cantata_models.bagel.vision import Vision, to_patches


class VisionEncoderStage:
    """Implements `contract.model.feed_forward.FeedForward`. `patch`: pixels on a side."""

    def __init__(self, vision: Vision, patch: int) -> None:
        self._vision, self._patch = vision, patch

    def key(self, inputs: VisionInput) -> bytes:
        """Hash of the pixels."""
        return hash_pictures(inputs.pictures)

    def run(self, batch: Sequence[VisionInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """See pictures one after the other: their sizes differ."""
        return [
            {SEEN: Rows(torch.cat([self._seen(p) for p in inputs.pictures]).cpu().numpy())}
            for inputs in batch
        ]

    @torch.inference_mode()
    def _seen(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """[H, W, 3] -> [L, D] float32."""
        weight = self._vision.pos_embed
        grid = Grid(pixels.shape[0] // self._patch, pixels.shape[1] // self._patch)
        patches = to_patches(to_planes(pixels), self._patch).to(weight.device, weight.dtype)
        return torch.as_tensor(self._vision(patches, grid).float())


def load_eyes(checkpoint: Path, device: torch.device) -> VisionEncoderStage:
    """Return a checkpoint's vision transformer. Raises ConfigError: weights are missing or of
    another shape."""
    config = load_config(checkpoint)
    return VisionEncoderStage(
        load_vision(checkpoint, config, device, dtype_on(device)), config.vision.patch
    )


class BagelReferenceEncoder:
    """Implements `contract.model.feed_forward.FeedForward`."""

    def __init__(self, encoder: BagelPictureEncoder) -> None:
        self._encoder = encoder

    def key(self, inputs: BagelReferenceInput) -> bytes:
        """Hash of the pixels and of the seed, which chooses among a picture's latents."""
        return hash_pictures(inputs.pictures, f"{inputs.seed}")

    def run(
        self, batch: Sequence[BagelReferenceInput]
    ) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode pictures one after the other: their sizes differ."""
        return [{REFERENCES: self._encode_all(inputs)} for inputs in batch]

    def _encode_all(self, inputs: BagelReferenceInput) -> Rows:
        """[N, P] of all pictures."""
        unit = PIXELS_PER_TOKEN
        grids = [Grid(p.shape[0] // unit, p.shape[1] // unit) for p in inputs.pictures]
        noises = draw_references(inputs.seed, grids, self._encoder.channels)
        pairs = zip(inputs.pictures, noises, strict=True)
        output = [to_tokens(self._encoder.sample(pixels, noise)) for pixels, noise in pairs]
        return Rows(torch.cat(output).cpu().numpy())


class BagelLatentDecoder:
    """Implements `contract.model.feed_forward.FeedForward` and `FedFeedForward`."""

    def __init__(self, decoder: BagelPictureDecoder) -> None:
        self._decoder = decoder

    def awaits(self, inputs: BagelDecodeInput) -> Collection[str]:
        """The denoiser's tokens."""
        return (LATENTS,)

    def key(self, inputs: Fed) -> bytes | None:
        """None: no two pictures are the same."""
        return None

    def run(self, batch: Sequence[Fed]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Decode pictures one after the other: that is as quick, and each needs much memory."""
        return [self._decode_one(fed) for fed in batch]

    def _decode_one(self, fed: Fed) -> Mapping[str, Payload] | CantataError:
        tokens, grid = fed.arrived[LATENTS], Grid(*fed.inputs.grid)
        if not isinstance(tokens, Rows) or len(tokens.values) != grid.tokens:
            return RequestFailed(f"a picture of {grid.tokens} tokens came with other latents")
        latents = to_latents(torch.from_numpy(tokens.values), grid)
        return {IMAGE: Image(self._decoder.decode(latents))}


def load_reference_encoder(checkpoint: Path, device: torch.device) -> BagelReferenceEncoder:
    """Return a checkpoint's encoder of references. Raises ConfigError: weights are missing or of
    another shape."""
    return BagelReferenceEncoder(BagelPictureEncoder(checkpoint, device))


def load_latent_decoder(checkpoint: Path, device: torch.device) -> BagelLatentDecoder:
    """Return a checkpoint's decoder; raises as `load_reference_encoder`."""
    return BagelLatentDecoder(BagelPictureDecoder(checkpoint, device))
