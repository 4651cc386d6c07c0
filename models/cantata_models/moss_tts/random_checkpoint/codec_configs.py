"""config.json of the random tokenizers: both models' module trees, tiny and of the published size.

An encoder alternates patches and transformers, from the signal to frames. The decoder mirrors it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

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
