"""The tensors of an autoencoder, as encoder and decoder take them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from cantata_layers.random_rules import Rules, Shape, lengths, specify, values
from cantata_layers.random_tensors import TensorSpec
from cantata_layers.weights import TakenShapes
from cantata_models.voxcpm2.codec.config import CodecConfig, load_codec_config
from cantata_models.voxcpm2.codec.decoder import SoundDecoder
from cantata_models.voxcpm2.codec.encoder import SoundEncoder

META = torch.device("meta")


def codec_tensors(folder: Path) -> Iterator[TensorSpec]:
    """Yield every tensor of audiovae.safetensors; `folder` has the config.json."""
    taken = TakenShapes()
    SoundEncoder(folder, META, taken.read)
    SoundDecoder(folder, META, taken.read)
    yield from specify(dict(_published(taken.shapes)), _rules(load_codec_config(folder)))


def _published(shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape]]:
    """Yield names and shapes as published: a convolution's directions apart from their lengths, and
    the deviations of latents, which nobody reads, beside their means."""
    for taken, shape in shapes.items():
        for name in dict.fromkeys((taken, taken.replace("fc_mu", "fc_logvar"))):
            if name.endswith(".weight") and len(shape) == 3:
                yield f"{name}_v", shape
                yield f"{name}_g", (shape[0], 1, 1)
            else:
                yield name, shape


def _rules(config: CodecConfig) -> Rules:
    last = len(config.decoder_rates) + 3
    return {
        r"\.alpha$|scale_embed\.weight$": values(0.2, 1.0),
        r"bias_embed\.weight$": values(0.2),
        r"weight_v$": values(1.0),
        # Recordings are far from -1..1 most of the time.
        r"^encoder\.block\.0\.weight_g$": lengths(4.0),
        # What a unit adds.
        r"block\.\d+\.block\.3\.weight_g$": lengths(0.3),
        # Sound that is loud and seldom clips.
        rf"^decoder\.model\.{last}\.weight_g$": lengths(0.02),
        # Of each input, an output gets two taps; there are half as many outputs as inputs.
        **{
            rf"^decoder\.model\.{layer}\.block\.1\.weight_g$": lengths(math.sqrt(rate / 2))
            for layer, rate in enumerate(config.decoder_rates, start=2)
        },
        r"weight_g$": lengths(1.0),
    }
