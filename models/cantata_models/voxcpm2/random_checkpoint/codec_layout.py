"""The tensors of an autoencoder, named and shaped as published.

Every convolution has its directions (`weight_v`) and their lengths (`weight_g`) apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from cantata_layers.random_tensors import TensorSpec, bias

Config = dict[str, Any]
KERNEL = 7
UNITS = 3
"""Of a stage."""
WAVE_GAIN = 0.02
"""Of the last convolution: sound that is loud and seldom clips."""
UPDATE_GAIN = 0.3
"""Of what a unit adds."""


def codec_tensors(config: Config) -> Iterator[TensorSpec]:
    """Return the specifications of the tensors of audiovae.safetensors."""
    yield from _encoder(config["audio_vae_config"])
    yield from _decoder(config["audio_vae_config"])


def _encoder(config: Config) -> Iterator[TensorSpec]:
    size, name = config["encoder_dim"], "encoder.block"
    # Recordings are far from -1..1 most of the time.
    yield from _conv(f"{name}.0", size, 1, KERNEL, gain=4.0)
    for number, rate in enumerate(config["encoder_rates"], start=1):
        stage = f"{name}.{number}.block"
        yield from _units(stage, 0, size)
        yield _alpha(f"{stage}.3", size)
        yield from _conv(f"{stage}.4", 2 * size, size, 2 * rate)
        size *= 2
    for head in ("fc_mu", "fc_logvar"):
        yield from _conv(f"encoder.{head}", config["latent_dim"], size, 3)


def _decoder(config: Config) -> Iterator[TensorSpec]:
    latent, size, name = config["latent_dim"], config["decoder_dim"], "decoder.model"
    buckets = config["sr_bin_boundaries"]
    yield from _conv(f"{name}.0", latent, 1, KERNEL)
    yield from _conv(f"{name}.1", size, latent, 1)
    layer = 2
    for rate in config["decoder_rates"]:
        if buckets is not None:
            shape, table = (len(buckets) + 1, size), f"decoder.sr_cond_model.{layer}"
            yield TensorSpec(f"{table}.scale_embed.weight", shape, 0.2, 1.0)
            yield TensorSpec(f"{table}.bias_embed.weight", shape, 0.2)
        stage = f"{name}.{layer}.block"
        yield _alpha(f"{stage}.0", size)
        # Of each input, an output gets two taps; there are half as many outputs as inputs.
        length = math.sqrt(rate / 2)
        yield from _conv(f"{stage}.1", size, size // 2, 2 * rate, gain=length, outputs=size // 2)
        size //= 2
        yield from _units(stage, 2, size)
        layer += 1
    yield _alpha(f"{name}.{layer}", size)
    yield from _conv(f"{name}.{layer + 1}", 1, size, KERNEL, gain=WAVE_GAIN)


def _units(stage: str, first: int, size: int) -> Iterator[TensorSpec]:
    for number in range(first, first + UNITS):
        unit = f"{stage}.{number}.block"
        yield _alpha(f"{unit}.0", size)
        yield from _conv(f"{unit}.1", size, 1, KERNEL)
        yield _alpha(f"{unit}.2", size)
        yield from _conv(f"{unit}.3", size, size, 1, gain=UPDATE_GAIN)


def _alpha(name: str, size: int) -> TensorSpec:
    return TensorSpec(f"{name}.alpha", (1, size, 1), 0.2, 1.0)


def _conv(
    name: str,
    first: int,
    second: int,
    kernel: int,
    gain: float = 1.0,
    outputs: int | None = None,
) -> Iterator[TensorSpec]:
    """Return a convolution's tensors; its weight is [first, second, kernel]."""
    yield TensorSpec(f"{name}.weight_v", (first, second, kernel), 1.0)
    yield TensorSpec(f"{name}.weight_g", (first, 1, 1), 0.1 * gain, gain)
    yield bias(name, first if outputs is None else outputs)
