"""Seeded random audio tokenizers: both models' module trees, tiny and of the published size.

An encoder alternates patches and transformers, from the signal to frames. The decoder mirrors it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

from cantata_layers.checkpoint import INDEX_FILE
from cantata_layers.random_tensors import TensorSpec, bias, norm, weight, write_tensors

SAMPLE_RATE = 48_000
SAMPLES_PER_FRAME = 3_840
PATCH, TRANSFORMER = "PatchedPretransform", "Transformer"


@dataclass(frozen=True, slots=True)
class MossCodecStage:
    """One transformer of the encoder, and its mirror image in the decoder."""

    width: int
    heads: int
    layers: int
    context_s: float
    outputs: int
    """Channels towards the frames."""


Modules: TypeAlias = tuple[int | MossCodecStage, ...]
"""Patch sizes and transformers, from the signal to frames."""


@dataclass(frozen=True, slots=True)
class MossCodecShape:
    """The values that differ between tokenizers."""

    modules: Modules
    residual: int
    codebooks: int
    codebook_size: int
    shards: int
    """Number of weight files."""

    @property
    def latent(self) -> int:
        """Width of a frame."""
        *_, (_, _, width) = _walk(self.modules)
        return width


TINY_LOCAL = MossCodecShape(
    modules=(
        *(240, MossCodecStage(32, 2, 2, 0.0925, 24)),
        *(2, MossCodecStage(32, 2, 1, 0.125, 24)),
        *(2, MossCodecStage(32, 2, 1, 0.18, 24)),
        *(2, MossCodecStage(32, 2, 1, 0.26, 24)),
        *(2, MossCodecStage(32, 2, 1, 0.36, 40)),
        *(2, MossCodecStage(64, 4, 2, 0.56, 48)),
    ),
    residual=32,
    codebooks=6,
    codebook_size=64,
    shards=3,
)
"""Like `LOCAL`. Windows of 37, 25, 18, 13, 9 and 7 positions: of two to seven frames."""
TINY_NANO = MossCodecShape(
    modules=(
        *(240, MossCodecStage(32, 2, 2, 0.11, 24)),
        *(2, MossCodecStage(32, 2, 1, 0.2, 24)),
        *(2, MossCodecStage(32, 2, 1, 0.35, 24)),
        *(2, MossCodecStage(32, 2, 2, 0.5, 12)),
        4,
    ),
    residual=32,
    codebooks=4,
    codebook_size=64,
    shards=1,
)
"""Like `NANO`. Windows of 44, 40, 35 and 25 positions: of two to seven frames."""
LOCAL = MossCodecShape(
    modules=(
        *(240, MossCodecStage(768, 12, 12, 1.0, 384)),
        *(2, MossCodecStage(768, 12, 12, 2.0, 384)),
        *(2, MossCodecStage(768, 12, 12, 4.0, 384)),
        *(2, MossCodecStage(768, 12, 12, 8.0, 384)),
        *(2, MossCodecStage(768, 12, 12, 10.0, 640)),
        *(2, MossCodecStage(1280, 20, 32, 10.0, 768)),
    ),
    residual=512,
    codebooks=32,
    codebook_size=1024,
    shards=3,
)
"""MOSS-Audio-Tokenizer-v2, of which MOSS-TTS-Local v1.5 uses 12 codebooks."""
NANO = MossCodecShape(
    modules=(
        *(240, MossCodecStage(256, 4, 4, 4.0, 384)),
        *(2, MossCodecStage(256, 4, 2, 6.0, 384)),
        *(2, MossCodecStage(256, 4, 2, 8.0, 384)),
        *(2, MossCodecStage(256, 4, 4, 10.0, 192)),
        4,
    ),
    residual=512,
    codebooks=16,
    codebook_size=1024,
    shards=1,
)
"""MOSS-Audio-Tokenizer-Nano."""
REDUCED_NANO = replace(
    NANO,
    modules=tuple(
        replace(module, width=64, heads=1, layers=1)
        if isinstance(module, MossCodecStage)
        else module
        for module in NANO.modules
    ),
)
"""All codebooks and windows, for several streams at a time on a few CPU cores."""


def codec_config(shape: MossCodecShape) -> dict[str, Any]:
    """Return a tokenizer's config.json."""
    encoder = [_module(*step) for step in _walk(shape.modules)]
    decoder = [_mirrored(module) for module in reversed(encoder)]
    return {
        "architectures": ["MossAudioTokenizerModel"],
        "auto_map": {
            "AutoConfig": "configuration_moss_audio_tokenizer.MossAudioTokenizerConfig",
            "AutoModel": "modeling_moss_audio_tokenizer.MossAudioTokenizerModel",
        },
        "model_type": "moss-audio-tokenizer",
        "sample_rate": SAMPLE_RATE,
        "sampling_rate": SAMPLE_RATE,
        "downsample_rate": SAMPLES_PER_FRAME,
        "causal_transformer_context_duration": 10.0,
        "number_channels": 2,
        "enable_channel_interleave": True,
        "attention_implementation": "sdpa",
        "compute_dtype": "fp32",
        "dtype": "float32",
        "code_dim": shape.latent,
        "encoder_kwargs": encoder,
        "decoder_kwargs": decoder,
        "quantizer_type": "rlfq",
        "quantizer_kwargs": {
            "codebook_dim": 8,
            "codebook_loss_weight": 1.0,
            "codebook_size": shape.codebook_size,
            "commitment_loss_weight": 0.25,
            "input_dim": shape.latent,
            "num_quantizers": shape.codebooks,
            "output_dim": shape.latent,
            "quantizer_dropout": 1.0,
            "quantizer_type": "rlfq",
            "rvq_dim": shape.residual,
        },
        "transformers_version": "4.56.0.dev0",
        "reversed_decoder_kwargs": encoder,
    }


def _walk(modules: Modules) -> Iterator[tuple[int | MossCodecStage, int, int]]:
    """Yield each module with its channels towards the signal and towards the frames."""
    width = 1
    for module in modules:
        before = width
        width = width * module if isinstance(module, int) else module.outputs
        yield module, before, width


def _module(module: int | MossCodecStage, inputs: int, outputs: int) -> dict[str, Any]:
    if isinstance(module, int):
        return {"module_type": PATCH, "patch_size": module}
    return {
        "causal": True,
        "context_duration": module.context_s,
        "conv_layout": True,
        "d_model": module.width,
        "dim_feedforward": 4 * module.width,
        "gating": "none",
        "input_dimension": inputs,
        "layer_scale": 0.01,
        "max_period": 10000,
        "module_type": TRANSFORMER,
        "norm": "layer_norm",
        "num_heads": module.heads,
        "num_layers": module.layers,
        "output_dimension": outputs,
        "positional_embedding": "rope",
    }


def _mirrored(module: dict[str, Any]) -> dict[str, Any]:
    if module["module_type"] == PATCH:
        return module
    inputs, outputs = module["input_dimension"], module["output_dimension"]
    return module | {"input_dimension": outputs, "output_dimension": inputs}


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
    yield from _quantizer(config["quantizer_kwargs"])
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


def _quantizer(config: Config) -> Iterator[TensorSpec]:
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


def write_codec(folder: Path, shape: MossCodecShape, seed: int) -> Path:
    """Write a tokenizer of this shape into `folder` and return it: as published, in float32."""
    folder.mkdir(parents=True, exist_ok=True)
    write_config(folder, shape)
    specs = list(codec_tensors(codec_config(shape)))
    files: dict[str, str] = {}
    size = -(-len(specs) // shape.shards)
    for index in range(shape.shards):
        name = f"model-{index + 1:05}-of-{shape.shards:05}.safetensors"
        shard = specs[index * size : (index + 1) * size]
        write_tensors(folder / name, shard, seed, torch.float32)
        files |= {spec.name: name for spec in shard}
    values = sum(math.prod(spec.shape) for spec in specs)
    index_file = {"metadata": {"total_size": 4 * values}, "weight_map": files}
    _write_json(folder / INDEX_FILE, index_file)
    return folder


def write_config(folder: Path, shape: MossCodecShape) -> None:
    """Write only the tokenizer's config.json."""
    _write_json(folder / "config.json", codec_config(shape))


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
