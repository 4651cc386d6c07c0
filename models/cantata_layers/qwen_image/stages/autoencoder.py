"""The stages of the autoencoder's halves: references to tokens, tokens to pictures.

Letters: R tokens of all references, N of a picture, P numbers of a token.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import torch

from cantata.contract.data.chunks import Image, Payload, Rows
from cantata.contract.data.errors import CantataError, RequestFailed
from cantata.contract.model.feed_forward import Fed, Tiling, hash_pictures
from cantata.contract.model.pipeline import LATENTS
from cantata_layers.qwen_image.config import load_config
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.sampling import to_latents, to_tokens
from cantata_layers.qwen_image.stages.pipeline import IMAGE, REFERENCES, DecodeInput, ReferenceInput
from cantata_layers.qwen_image.vae.coder import PictureDecoder, PictureEncoder


class ReferenceEncoder:
    """Implements `contract.model.feed_forward.FeedForward`."""

    def __init__(self, encoder: PictureEncoder) -> None:
        self._encoder = encoder

    def key(self, inputs: ReferenceInput) -> bytes:
        """Hash of the pixels."""
        return hash_pictures(inputs.pictures)

    def run(
        self, batch: Sequence[ReferenceInput]
    ) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode pictures one after the other: their sizes differ."""
        return [{REFERENCES: self._encode(inputs)} for inputs in batch]

    def _encode(self, inputs: ReferenceInput) -> Rows:
        """[R, P]."""
        output = [to_tokens(self._encoder.encode(pixels)) for pixels in inputs.pictures]
        return Rows(torch.cat(output).cpu().numpy())


class LatentDecoder:
    """Implements `contract.model.feed_forward.FeedForward` and `FedFeedForward`."""

    def __init__(self, decoder: PictureDecoder) -> None:
        self._decoder = decoder

    def awaits(self, inputs: DecodeInput) -> Collection[str]:
        """The denoiser's tokens."""
        return (LATENTS,)

    def key(self, inputs: Fed) -> bytes | None:
        """None: no two pictures are the same."""
        return None

    def run(self, batch: Sequence[Fed]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Decode pictures one after the other: that is as quick, and each needs much memory."""
        return [self._decode(fed) for fed in batch]

    def _decode(self, fed: Fed) -> Mapping[str, Payload] | CantataError:
        tokens, grid = fed.arrived[LATENTS], Grid(*fed.inputs.grid)
        if not isinstance(tokens, Rows) or len(tokens.values) != grid.tokens:
            return RequestFailed(f"a picture of {grid.tokens} tokens came with other latents")
        latents = to_latents(torch.from_numpy(tokens.values), grid)
        return {IMAGE: Image(self._decoder.decode(latents))}


def load_reference_encoder(
    checkpoint: Path, device: torch.device, tiling: Tiling | None = None
) -> ReferenceEncoder:
    """Return a checkpoint's encoder of references. Raises ConfigError: weights are missing or of
    another shape."""
    config = load_config(checkpoint)
    return ReferenceEncoder(PictureEncoder(checkpoint, config.vae, device, tiling))


def load_latent_decoder(
    checkpoint: Path, device: torch.device, tiling: Tiling | None = None
) -> LatentDecoder:
    """Return a checkpoint's decoder; raises as `load_reference_encoder`."""
    config = load_config(checkpoint)
    return LatentDecoder(PictureDecoder(checkpoint, config.vae, device, tiling))
