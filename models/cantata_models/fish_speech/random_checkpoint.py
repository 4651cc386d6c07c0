"""Random checkpoints in both layouts, of the published size or smaller."""

from __future__ import annotations

import argparse
import base64
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import save_file

from cantata_layers.checkpoint import SINGLE_FILE
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_layers.random_qwen_tokenizer import ORDINARY_TOKENS, write_qwen_tokenizer
from cantata_layers.random_tensors import (
    PEAKY,
    TensorSpec,
    bias,
    conv,
    draw,
    linear,
    norm,
    weight,
    write_json,
)
from cantata_models.fish_speech.codec import FILE as CODEC_FILE
from cantata_models.fish_speech.codec import HEAD_DIM
from cantata_models.fish_speech.config import CODEBOOKS, FishLayout
from cantata_models.fish_speech.networks import S1_FILE
from cantata_models.fish_speech.tokenizers import (
    IM_END,
    IM_START,
    INTERLEAVE,
    RANKS_FILE,
    SEMANTIC,
    SPECIAL_FILE,
    TOKENIZER_FILE,
    VOICE,
)


@dataclass(frozen=True, slots=True)
class FishStackShape:
    """A stack of the talker."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int


@dataclass(frozen=True, slots=True)
class FishCodecShape:
    """Sizes of codec.pth."""

    semantic: int
    """Entries of the semantic codebook."""
    residual: int
    """Of each of the others."""
    latent: int
    ffn: int
    layers: int
    """Of the transformers over frames."""
    encoder: int
    """Channels behind the encoder's first convolution; 16 times as many behind its stages."""
    encoder_layers: int
    """Of its last stage."""
    decoder: int
    """Channels in front of the decoder's stages."""


@dataclass(frozen=True, slots=True)
class FishShape:
    """Sizes of a whole checkpoint."""

    layout: FishLayout
    slow: FishStackShape
    fast: FishStackShape
    codes: int
    codec: FishCodecShape
    first_special: int | None = None
    """Id of the first special token; None: behind the ordinary ones."""
    theta: float = 10_000.0
    tied: bool = True
    end_gain: float = 0.02
    """Of the end token's row, by whose size speech ends soon or late."""
    norms: tuple[bool, bool] | None = None
    """Whether the slow and the fast stack normalize queries and keys; None: as published, and the
    config says so."""

    @property
    def normed(self) -> tuple[bool, bool]:
        """Which stacks do, the slow one first."""
        return self.norms or (True, False)


TINY_CODEC = FishCodecShape(
    semantic=64, residual=32, latent=128, ffn=96, layers=2, encoder=8, encoder_layers=1, decoder=48
)
TINY_S2 = FishShape(
    layout=FishLayout.S2,
    slow=FishStackShape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, ffn=96),
    fast=FishStackShape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, ffn=96),
    codes=64,
    codec=TINY_CODEC,
)
TINY_S2_ENDING = replace(TINY_S2, end_gain=1.0)
"""Ends by itself."""
TINY_S1 = FishShape(
    layout=FishLayout.S1,
    slow=FishStackShape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, ffn=96),
    fast=FishStackShape(hidden=48, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=64),
    codes=1280,
    codec=replace(TINY_CODEC, semantic=1280, residual=1024),
    tied=False,
)
"""The fast stack is narrower, and has more codes than can be chosen behind code 0."""
OTHER_S1 = replace(
    TINY_S1,
    slow=FishStackShape(hidden=64, layers=1, heads=2, kv_heads=2, head_dim=64, ffn=256),
    fast=FishStackShape(hidden=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=96),
    codes=1100,
    codec=replace(TINY_CODEC, semantic=1060, residual=1024),
    tied=True,
    norms=(False, True),
)
"""Only the fast stack normalizes queries and keys, which the config does not say; each head has
keys of its own; the codec lacks some semantic codes."""
PUBLISHED_CODEC = FishCodecShape(
    semantic=4096,
    residual=1024,
    latent=1024,
    ffn=3072,
    layers=8,
    encoder=64,
    encoder_layers=4,
    decoder=1536,
)
PUBLISHED_S2 = FishShape(
    layout=FishLayout.S2,
    slow=FishStackShape(hidden=2560, layers=36, heads=32, kv_heads=8, head_dim=128, ffn=9728),
    fast=FishStackShape(hidden=2560, layers=4, heads=32, kv_heads=8, head_dim=128, ffn=9728),
    codes=4096,
    codec=PUBLISHED_CODEC,
    first_special=151_643,
    theta=1_000_000.0,
)
"""S2 Pro: 9 GB in bfloat16."""
REDUCED_S2 = FishShape(
    layout=FishLayout.S2,
    slow=FishStackShape(hidden=192, layers=6, heads=3, kv_heads=1, head_dim=64, ffn=576),
    fast=FishStackShape(hidden=192, layers=2, heads=3, kv_heads=1, head_dim=64, ffn=576),
    codes=4096,
    codec=FishCodecShape(
        semantic=4096,
        residual=1024,
        latent=192,
        ffn=576,
        layers=2,
        encoder=16,
        encoder_layers=2,
        decoder=64,
    ),
)
"""All codes and strides of S2 Pro, a thirteenth of the talker's width: two CPU cores play eight
streams of it in real time."""


def model_config(shape: FishShape, vocabulary: int) -> dict[str, Any]:
    """Return config.json.

    Args:
        shape: of the checkpoint.
        vocabulary: rows of the table of tokens.
    """
    slow = _stack(shape.slow, "") | {
        "max_seq_len": 32_768,
        "norm_eps": 1e-6,
        "rope_base": shape.theta,
        "tie_word_embeddings": shape.tied,
        "vocab_size": vocabulary,
    }
    if shape.layout is FishLayout.S2:
        fast = _stack(shape.fast, "") | {
            "num_codebooks": CODEBOOKS,
            "text_dim": shape.slow.hidden,
            "tie_word_embeddings": False,
            "vocab_size": shape.codes,
        }
        if shape.norms is None:
            slow["attention_qk_norm"], fast["attention_qk_norm"] = shape.normed
        return {"model_type": shape.layout, "text_config": slow, "audio_decoder_config": fast}
    fast = _stack(shape.fast, "fast_")
    if shape.norms is None:
        slow["attention_qk_norm"], fast["fast_attention_qk_norm"] = shape.normed
    fast["n_fast_layer"] = fast.pop("fast_n_layer")
    return {
        "model_type": shape.layout,
        **slow,
        **fast,
        "codebook_size": shape.codes,
        "num_codebooks": CODEBOOKS,
        "scale_codebook_embeddings": True,
    }


def _stack(stack: FishStackShape, prefix: str) -> dict[str, Any]:
    sizes = {
        "dim": stack.hidden,
        "n_layer": stack.layers,
        "n_head": stack.heads,
        "n_local_heads": stack.kv_heads,
        "head_dim": stack.head_dim,
        "intermediate_size": stack.ffn,
    }
    return {f"{prefix}{name}": value for name, value in sizes.items()}


NAMES = ("<|endoftext|>", IM_START, IM_END, VOICE, INTERLEAVE, "<|audio_pad|>")
PUBLISHED_SEMANTIC = 35
"""The published semantic tokens begin so far behind the first special one."""
MERGED = (b"in", b"he", b"the", b" the", b"er", b"on")
S1_ORDINARY = 256 + len(MERGED)


def special_ids(shape: FishShape) -> Mapping[str, int]:
    """Return the special tokens' ids. S1's semantic tokens come first, so that others follow."""
    if shape.layout is FishLayout.S1:
        semantic = first = S1_ORDINARY
        first += shape.codes
    elif shape.first_special is None:
        first = ORDINARY_TOKENS
        semantic = first + len(NAMES)
    else:
        first = shape.first_special
        semantic = first + PUBLISHED_SEMANTIC
    ids = {name: first + rank for rank, name in enumerate(NAMES)}
    return ids | {SEMANTIC.format(code): semantic + code for code in range(shape.codes)}


def write_tokenizer(folder: Path, shape: FishShape) -> int:
    """Write a checkpoint's tokenizer; returns how many tokens it has."""
    ids = special_ids(shape)
    if shape.layout is FishLayout.S2:
        with TemporaryDirectory() as parts:
            write_qwen_tokenizer(Path(parts), ids)
            load_qwen_tokenizer(Path(parts)).save(str(folder / TOKENIZER_FILE))
    else:
        tokens = [*(bytes([byte]) for byte in range(256)), *MERGED]
        lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
        (folder / RANKS_FILE).write_text("\n".join(lines) + "\n", "utf-8")
        write_json(folder / SPECIAL_FILE, dict(ids))
    return max(ids.values()) + 1


CODE_WIDTH = 8
DECODER_RATES, ENCODER_RATES, FRAME_RATES = (8, 8, 4, 2), (2, 4, 8, 8), (2, 2)
UNITS = 3
INPUT_GAIN = 8.0
"""Of the encoder's first convolution: a quiet recording must matter beside biases."""
OUTPUT_GAIN = 0.025
"""Of the decoder's last one: keeps the wave where the last function is nearly a line."""


def codec_tensors(shape: FishCodecShape) -> Iterator[TensorSpec]:
    """Yield every tensor of the codec."""
    yield from _quantizers(shape)
    for name in ("pre_module", "post_module"):
        yield from _transformer(f"quantizer.{name}", shape.latent, shape.ffn, shape.layers)
    for index, rate in enumerate(FRAME_RATES):
        for name in ("upsample", "downsample"):
            fan = shape.latent * (rate if name == "downsample" else 1)
            stem = f"quantizer.{name}.{index}"
            yield weight(f"{stem}.0.conv", shape.latent, shape.latent, rate, fan_in=fan)
            yield bias(f"{stem}.0.conv", shape.latent)
            yield from _conv_next(f"{stem}.1", shape.latent)
    yield from _decoder(shape)
    yield from _encoder(shape)


def _quantizers(shape: FishCodecShape) -> Iterator[TensorSpec]:
    for book in range(CODEBOOKS):
        stem = (
            "semantic_quantizer.quantizers.0" if book == 0 else f"quantizer.quantizers.{book - 1}"
        )
        name, size = f"quantizer.{stem}", shape.residual if book else shape.semantic
        # Each codebook takes a smaller part than the one before it.
        gain = 0.8**book
        for projection, inputs, outputs in (
            ("in_proj", shape.latent, CODE_WIDTH),
            ("out_proj", CODE_WIDTH, shape.latent),
        ):
            stem = f"{name}.{projection}"
            yield TensorSpec(f"{stem}.weight_g", (outputs, 1, 1), 0.1 * gain, gain)
            yield TensorSpec(f"{stem}.weight_v", (outputs, inputs, 1), 1.0)
            yield TensorSpec(f"{stem}.bias", (outputs,), 0.05)
        yield TensorSpec(f"{name}.codebook.weight", (size, CODE_WIDTH), 1.0)


def _transformer(name: str, size: int, ffn: int, layers: int) -> Iterator[TensorSpec]:
    for index in range(layers):
        layer = f"{name}.layers.{index}"
        yield weight(f"{layer}.attention.wqkv", 3 * size, size, gain=2.0)
        yield weight(f"{layer}.attention.wo", size, size, gain=3.0)
        yield weight(f"{layer}.feed_forward.w1", ffn, size)
        yield weight(f"{layer}.feed_forward.w3", ffn, size)
        yield weight(f"{layer}.feed_forward.w2", size, ffn, gain=2.0)
        yield norm(f"{layer}.attention_norm", size)
        yield norm(f"{layer}.ffn_norm", size)
        yield _scale(f"{layer}.attention_layer_scale.gamma", size)
        yield _scale(f"{layer}.ffn_layer_scale.gamma", size)
    yield norm(f"{name}.norm", size)
    # What the published file holds too, and what the config says instead.
    yield TensorSpec(f"{name}.freqs_cis", (4, HEAD_DIM // 2, 2), 9.0)


def _scale(name: str, size: int) -> TensorSpec:
    """A layer scale, large enough to matter."""
    return TensorSpec(name, (size,), 0.1, 0.3)


def _conv_next(name: str, size: int) -> Iterator[TensorSpec]:
    yield _scale(f"{name}.gamma", size)
    yield from conv(f"{name}.dwconv.conv", 1, size, 7)
    yield norm(f"{name}.norm", size)
    yield bias(f"{name}.norm", size)
    yield from linear(f"{name}.pwconv1", size, 4 * size)
    yield from linear(f"{name}.pwconv2", 4 * size, size, gain=2.0)


def _decoder(shape: FishCodecShape) -> Iterator[TensorSpec]:
    name, size = "decoder.model", shape.decoder
    yield from _normed(f"{name}.0", shape.latent, size, 7)
    for index, rate in enumerate(DECODER_RATES, start=1):
        block = f"{name}.{index}.block"
        yield _snake(f"{block}.0", size)
        # Each output is the sum over two taps of all inputs.
        length = math.sqrt(rate / 2)
        yield from _lengths(f"{block}.1", (size, size // 2, 2 * rate), length)
        yield bias(f"{block}.1.conv", size // 2)
        size //= 2
        for unit in range(2, 2 + UNITS):
            yield from _residual(f"{block}.{unit}", size)
    last = len(DECODER_RATES) + 1
    yield _snake(f"{name}.{last}", size)
    yield from _normed(f"{name}.{last + 1}", size, 1, 7, gain=OUTPUT_GAIN)


def _encoder(shape: FishCodecShape) -> Iterator[TensorSpec]:
    name, size = "encoder.block", shape.encoder
    yield from _normed(f"{name}.0", 1, size, 7, gain=INPUT_GAIN)
    for index, rate in enumerate(ENCODER_RATES, start=1):
        block = f"{name}.{index}.block"
        for unit in range(UNITS):
            yield from _residual(f"{block}.{unit}", size)
        yield _snake(f"{block}.{UNITS}", size)
        yield from _normed(f"{block}.{UNITS + 1}", size, 2 * size, 2 * rate)
        size *= 2
    within = f"{name}.{len(ENCODER_RATES)}.block.{UNITS + 2}"
    yield from _transformer(within, size, shape.ffn, shape.encoder_layers)
    last = len(ENCODER_RATES) + 1
    yield _snake(f"{name}.{last}", size)
    yield from _normed(f"{name}.{last + 1}", size, shape.latent, 3)


def _residual(name: str, size: int) -> Iterator[TensorSpec]:
    yield _snake(f"{name}.block.0", size)
    yield from _normed(f"{name}.block.1", size, size, 7)
    yield _snake(f"{name}.block.2", size)
    yield from _normed(f"{name}.block.3", size, size, 1, gain=0.4)


def _snake(name: str, size: int) -> TensorSpec:
    return TensorSpec(f"{name}.alpha", (1, size, 1), 0.3, 1.0)


def _normed(
    name: str, inputs: int, outputs: int, kernel: int, gain: float = 1.0
) -> Iterator[TensorSpec]:
    """A convolution with a weight norm and a bias."""
    yield from _lengths(name, (outputs, inputs, kernel), gain)
    yield TensorSpec(f"{name}.conv.bias", (outputs,), 0.05 * gain)


def _lengths(name: str, shape: tuple[int, int, int], length: float) -> Iterator[TensorSpec]:
    stem = f"{name}.conv.parametrizations.weight.original"
    yield TensorSpec(f"{stem}0", (shape[0], 1, 1), 0.2 * length, length)
    yield TensorSpec(f"{stem}1", shape, 1.0)


def talker_tensors(shape: FishShape, vocabulary: int) -> Iterator[TensorSpec]:
    """Yield every tensor of the talker."""
    if shape.layout is FishLayout.S2:
        slow, fast, books = "text_model.model.", "audio_decoder.", "audio_decoder."
    else:
        slow, fast, books = "", "fast_", ""
    size, inner = shape.slow.hidden, shape.fast.hidden
    yield TensorSpec(f"{slow}embeddings.weight", (vocabulary, size), 1.0)
    yield from _stack_shapes(slow, shape.slow, normed=shape.normed[0])
    if not shape.tied:
        yield weight(f"{slow}output", vocabulary, size, gain=3.0)
    yield TensorSpec(f"{books}codebook_embeddings.weight", (CODEBOOKS * shape.codes, size), 1.0)
    yield TensorSpec(f"{fast}embeddings.weight", (shape.codes, inner), 1.0)
    yield from _stack_shapes(fast, shape.fast, normed=shape.normed[1])
    yield weight(f"{fast}output", shape.codes, inner, gain=3.0)
    if inner != size:
        yield from linear(f"{fast}project_in", size, inner)


def _stack_shapes(prefix: str, stack: FishStackShape, *, normed: bool) -> Iterator[TensorSpec]:
    queries, keys = stack.heads * stack.head_dim, stack.kv_heads * stack.head_dim
    for index in range(stack.layers):
        layer = f"{prefix}layers.{index}"
        gain = 1.0 if normed else 2.0
        yield weight(f"{layer}.attention.wqkv", queries + 2 * keys, stack.hidden, gain=gain)
        yield weight(f"{layer}.attention.wo", stack.hidden, queries, gain=3.0)
        if normed:
            yield norm(f"{layer}.attention.q_norm", stack.head_dim, PEAKY)
            yield norm(f"{layer}.attention.k_norm", stack.head_dim, PEAKY)
        yield weight(f"{layer}.feed_forward.w1", stack.ffn, stack.hidden)
        yield weight(f"{layer}.feed_forward.w3", stack.ffn, stack.hidden)
        yield weight(f"{layer}.feed_forward.w2", stack.hidden, stack.ffn, gain=2.0)
        yield norm(f"{layer}.attention_norm", stack.hidden)
        yield norm(f"{layer}.ffn_norm", stack.hidden)
    yield norm(f"{prefix}norm", stack.hidden)


def write_checkpoint(
    folder: Path, shape: FishShape, seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = write_tokenizer(folder, shape)
    write_json(folder / "config.json", model_config(shape, vocabulary))
    tensors = _draw(talker_tensors(shape, vocabulary), seed, dtype)
    end = special_ids(shape)[IM_END]
    for name, tensor in tensors.items():
        if name.endswith("embeddings.weight" if shape.tied else "output.weight") and (
            len(tensor) == vocabulary
        ):
            tensor[end] *= shape.end_gain
    if shape.layout is FishLayout.S2:
        path = folder / SINGLE_FILE
        save_file(tensors, path, metadata={"format": "pt"})
        path.chmod(0o644)
    else:
        torch.save(tensors, folder / S1_FILE)
    # The published codec is float32, whatever the talker's dtype.
    torch.save(_draw(codec_tensors(shape.codec), seed, torch.float32), folder / CODEC_FILE)
    return folder


def _draw(specs: Iterable[TensorSpec], seed: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    return {spec.name: torch.from_numpy(draw(spec, seed)).to(dtype) for spec in specs}


def write_tiny_s2(folder: Path) -> None:
    """Write a tiny checkpoint of S2."""
    write_checkpoint(folder, TINY_S2, seed=1)


def write_tiny_s1(folder: Path) -> None:
    """Write a tiny checkpoint of S1."""
    write_checkpoint(folder, TINY_S1, seed=1)


SHAPES = {"s2": PUBLISHED_S2, "reduced-s2": REDUCED_S2, "tiny-s2": TINY_S2, "tiny-s1": TINY_S1}


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.fish_speech.random_checkpoint",
        description="Write a checkpoint with random weights (s2: 11 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SHAPES), default="s2")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    shape = SHAPES[arguments.size]
    print(write_checkpoint(arguments.folder, shape, arguments.seed, torch.bfloat16))


if __name__ == "__main__":
    main()
