"""The tensors of ema.safetensors and ae.safetensors, as the networks have them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cantata_layers.random_qwen3 import PEAKY
from cantata_layers.random_rules import Rules, gain, norm, specify, values
from cantata_layers.random_tensors import TensorSpec
from cantata_models.bagel.config import PATCH, BagelConfig
from cantata_models.bagel.network.latents import LatentTokens
from cantata_models.bagel.network.load import LANGUAGE, LATENTS, VISION, BagelLanguageModel
from cantata_models.bagel.network.vision import Vision
from cantata_models.bagel.vae.coder import DECODER, ENCODER
from cantata_models.bagel.vae.encoder_decoder import (
    BagelDecoderNetwork,
    BagelEncoderNetwork,
    VaeShape,
)

RULES: Rules = {
    r"embed_tokens": values(1.0),
    r"pos_embed$|position_embedding": values(0.7),
    r"vit_model.*self_attn.*\.weight$": gain(1.5),
    # Below that of a Qwen3: keys of one position, as a picture's, are alike enough.
    r"[qk]_norm": norm(PEAKY / 2),
    r"(?:o_proj|down_proj).*\.weight$": gain(2.0),
    r"decoder\.conv_out\.weight$": gain(0.5),
}


def model_tensors(config: BagelConfig, latents: int, latent_side: int) -> Iterator[TensorSpec]:
    """Yield those of language model, latents and vision.

    Args:
        config: sizes.
        latents: channels.
        latent_side: tokens of the largest picture.
    """
    width = config.language.width
    with torch.device("meta"):
        language = BagelLanguageModel(config.language)
        tokens = LatentTokens(PATCH**2 * latents, width, latent_side**2)
        vision = Vision(config.vision, width, config.vision.side**2)
    shapes = LANGUAGE.shapes(language) | LATENTS.shapes(tokens) | VISION.shapes(vision)
    yield from specify(shapes, RULES)


def vae_tensors(shape: VaeShape) -> Iterator[TensorSpec]:
    """Yield those of the autoencoder."""
    with torch.device("meta"):
        encoder, decoder = BagelEncoderNetwork(shape), BagelDecoderNetwork(shape)
    yield from specify(ENCODER.shapes(encoder) | DECODER.shapes(decoder), RULES)
