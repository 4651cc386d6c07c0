"""Names and shapes of a tokenizer's tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cantata_layers.random_tensors import TensorSpec, bias, norm, weight
from cantata_models.moss_tts.random_checkpoint.codec_configs import TRANSFORMER

Config = Mapping[str, Any]

INPUT_GAIN = 8.0
"""Gain of the encoder's first projection: a quiet recording must matter beside what is added."""
OUTPUT_GAIN = 0.05
"""Gain of the decoder's last projection: keeps the samples within about -1..1."""


def codec_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of a tokenizer with this config.json."""
    encoder, decoder = config["encoder_kwargs"], config["decoder_kwargs"]
    first, last = 1, len(decoder) - 2
    for index, module in enumerate(encoder):
        gain = INPUT_GAIN if index == first else 1.0
        yield from _transformer(f"encoder.{index}", module, gain, 1.0)
    yield from _quantiser(config["quantizer_kwargs"])
    for index, module in enumerate(decoder):
        gain = OUTPUT_GAIN if index == last else 1.0
        yield from _transformer(f"decoder.{index}", module, 1.0, gain)


def _transformer(name: str, module: Config, into: float, out: float) -> Iterator[TensorSpec]:
    """A transformer's tensors, with the gains of its projections; a patch has none."""
    if module["module_type"] != TRANSFORMER:
        return
    width = module["d_model"]
    yield weight(f"{name}.input_proj", width, module["input_dimension"], gain=into)
    for index in range(module["num_layers"]):
        yield from _layer(f"{name}.transformer.layers.{index}", width, module["dim_feedforward"])
    yield weight(f"{name}.output_proj", module["output_dimension"], width, gain=out)


def _layer(name: str, width: int, inner: int) -> Iterator[TensorSpec]:
    for index in ("1", "2"):
        yield norm(f"{name}.norm{index}", width)
        yield bias(f"{name}.norm{index}", width)
        yield TensorSpec(f"{name}.layer_scale_{index}.scale", (width,), 0.1, 0.3)
    yield weight(f"{name}.self_attn.in_proj", 3 * width, width, gain=1.5)
    yield weight(f"{name}.self_attn.out_proj", width, width, gain=3.0)
    yield weight(f"{name}.ffn.0", inner, width)
    yield weight(f"{name}.ffn.2", width, inner, gain=2.0)


def _quantiser(config: Config) -> Iterator[TensorSpec]:
    latent, residual, entry = config["input_dim"], config["rvq_dim"], config["codebook_dim"]
    yield from _projection("quantizer.input_proj", latent, residual, 1.0)
    yield from _projection("quantizer.output_proj", residual, latent, 1.0)
    for index in range(config["num_quantizers"]):
        name = f"quantizer.quantizers.{index}"
        # Each codebook takes a smaller part than the one before it.
        yield from _projection(f"{name}.in_proj", residual, entry, 1.0)
        yield from _projection(f"{name}.out_proj", entry, residual, 0.5 * 0.9**index)
        yield TensorSpec(f"{name}.codebook.weight", (config["codebook_size"], entry), 1.0)


def _projection(name: str, inputs: int, outputs: int, gain: float) -> Iterator[TensorSpec]:
    """A convolution of one position under weight norm: the rows' lengths and their directions."""
    parametrised = f"{name}.parametrizations.weight.original"
    yield TensorSpec(f"{parametrised}0", (outputs, 1, 1), 0.2 * gain, gain)
    yield TensorSpec(f"{parametrised}1", (outputs, inputs, 1), 1.0)
    yield bias(name, outputs)
