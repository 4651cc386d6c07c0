"""Decodes frames to 44.1 kHz sound with explicit state per slot.

The codebooks' latents pass a transformer over a window of frames, two stages that double the rate,
and four that raise it by 512. Nothing looks ahead, so each frame makes its 2,048 samples at once,
and streaming equals decoding the whole. The blocks are the Descript Audio Codec's (Kumar et al.,
2023), causal.

codec.pth has no configuration: its sizes follow from the shapes. Its names are brought to those of
`cantata_layers`: convolutions with their weight norm folded, projections of queries, keys and
values apart. Of the codebooks one is semantic, the others residual. A codebook projects what is
left to the width of its entries, takes the entry with the largest cosine, and projects that back
(factorised and normalized codes: Yu et al., 2022; Kumar et al., 2023).

Letters: B rows, T frames, Q codebooks, V entries of one, D their width, N the latent's width, L
positions, C channels, I inputs, O outputs, R the rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

from cantata.contract.data.errors import ConfigError
from cantata_layers.causal_convolutions import (
    DILATIONS,
    CausalConv,
    CausalConvNextBlock,
    CausalDownsample,
    CausalUpsample,
    ConvCache,
    Snake,
)
from cantata_layers.causal_decoder import CausalDecoder
from cantata_layers.checkpoint import read_pickle
from cantata_layers.exact_layers import Linear
from cantata_layers.sliding_transformer import SlidingTransformer
from cantata_layers.weights import Weights
from cantata_models.fish_speech.config import SAMPLE_RATE, check_codec, load_config
from cantata_models.fish_speech.networks import RoundedRotation, pairs_as_halves


class FishResidualUnit:
    """Snake, dilated convolution, snake, pointwise convolution and a residual connection."""

    def __init__(self, weights: Weights, name: str, size: int, dilation: int) -> None:
        name = f"{name}.block"
        self._first_snake = Snake(weights, f"{name}.0", size)
        self._dilated = CausalConv(weights, f"{name}.1.conv", size, size, 7, dilation)
        self._second_snake = Snake(weights, f"{name}.2", size)
        self._pointwise = CausalConv(weights, f"{name}.3.conv", size, size, 1)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        update = self._dilated(self._first_snake(x), past)
        return x + self._pointwise(self._second_snake(update), past)


class FishWaveStage:
    """Raises the rate, narrows, then applies residual units with three dilations."""

    def __init__(self, weights: Weights, name: str, inputs: int, outputs: int, rate: int) -> None:
        name = f"{name}.block"
        self._snake = Snake(weights, f"{name}.0", inputs)
        self._upsample = CausalUpsample(weights, f"{name}.1.conv", inputs, outputs, rate, 2 * rate)
        self._units = [
            FishResidualUnit(weights, f"{name}.{index}", outputs, dilation)
            for index, dilation in enumerate(DILATIONS, start=2)
        ]

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._upsample(self._snake(x), past)
        for unit in self._units:
            x = unit(x, past)
        return x


class AnalysisStage:
    """Residual units with three dilations, then a lower rate and more channels."""

    def __init__(self, weights: Weights, name: str, inputs: int, outputs: int, rate: int) -> None:
        name = f"{name}.block"
        self._units = [
            FishResidualUnit(weights, f"{name}.{index}", inputs, dilation)
            for index, dilation in enumerate(DILATIONS)
        ]
        self._snake = Snake(weights, f"{name}.3", inputs)
        self._downsample = CausalDownsample(
            weights, f"{name}.4.conv", inputs, outputs, rate, 2 * rate
        )

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        for unit in self._units:
            x = unit(x, past)
        return self._downsample(self._snake(x), past)


FILE = "codec.pth"
HEAD_DIM = 64
TRAINED = "generator."
"""What names begin with in a file that the codec's training saved."""
ROPE_THETA = 10_000.0
NORM_EPS = 1e-5
NORMS = (
    (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
    (".weight_g", ".weight_v"),
)
"""How the two tensors of a weight norm are named: lengths, directions."""
RENAMED = {
    "attention.wo.weight": "self_attn.o_proj.weight",
    "feed_forward.w1.weight": "mlp.gate_proj.weight",
    "feed_forward.w2.weight": "mlp.down_proj.weight",
    "feed_forward.w3.weight": "mlp.up_proj.weight",
    "attention_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "attention_layer_scale.gamma": "self_attn_layer_scale.scale",
    "ffn_layer_scale.gamma": "mlp_layer_scale.scale",
}


@dataclass(frozen=True, slots=True)
class TransformerSizes:
    """Implements `cantata_layers.sliding_transformer.SlidingSizes`."""

    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    intermediate_size: int
    window: int
    head_dim: int = HEAD_DIM
    rope_theta: float = ROPE_THETA
    rms_norm_eps: float = NORM_EPS


class CodecTensors:
    """A codec's tensors under the names of `cantata_layers`.

    Args:
        checkpoint: the folder of codec.pth.
        parts: what names begin with; the others are left out.

    Raises:
        ConfigError: the file is missing or damaged.
    """

    def __init__(self, checkpoint: Path, parts: tuple[str, ...]) -> None:
        self._path = checkpoint / FILE
        saved = ((name.removeprefix(TRAINED), each) for name, each in read_pickle(self._path))
        raw = {name: each for name, each in saved if name.startswith(parts)}
        self._tensors = dict(_split_fused(dict(_fold_norms(raw))))

    def weights(self, device: torch.device) -> Weights:
        """Hand them out to layers, as float32."""
        return Weights.of(self._tensors.items(), str(self._path), device)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def shape(self, name: str, axes: int) -> tuple[int, ...]:
        """The shape of a tensor.

        Raises:
            ConfigError: there is none of this name, or it has another number of axes.
        """
        if name not in self._tensors:
            raise ConfigError(f"{self._path}: tensor {name!r} is missing")
        shape = tuple(self._tensors[name].shape)
        if len(shape) != axes:
            raise ConfigError(f"{self._path}: tensor {name!r} must have {axes} axes, not {shape}")
        return shape

    def count(self, name: str, rest: str) -> int:
        """How many modules `name`.0, `name`.1, ... with a tensor `rest` there are."""
        index = 0
        while f"{name}.{index}.{rest}" in self._tensors:
            index += 1
        return index

    def transformer(self, name: str, window: int) -> TransformerSizes:
        """Of a transformer.

        Args:
            name: in front of `.layers`.
            window: positions that a position attends to.

        Raises:
            ConfigError: it lacks a tensor.
        """
        layer = f"{name}.layers.0"
        inner, hidden = self.shape(f"{layer}.mlp.gate_proj.weight", 2)
        queries, keys = (self.shape(f"{layer}.self_attn.{p}_proj.weight", 2)[0] for p in "qk")
        return TransformerSizes(
            hidden_size=hidden,
            layers=self.count(f"{name}.layers", "input_layernorm.weight"),
            heads=queries // HEAD_DIM,
            kv_heads=keys // HEAD_DIM,
            intermediate_size=inner,
            window=window,
        )


def _fold_norms(raw: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield tensors with weight norms folded: each first row's length is the stored one."""
    for name, tensor in raw.items():
        norm = next((pair for pair in NORMS if name.endswith(pair)), None)
        if norm is None:
            yield name, tensor
        elif name.endswith(norm[1]):
            stem = name.removesuffix(norm[1])
            lengths = raw.get(stem + norm[0])
            if lengths is None:
                raise ConfigError(f"{FILE}: tensor {stem + norm[0]!r} is missing")
            if tensor.ndim < 2 or lengths.numel() != len(tensor):
                raise ConfigError(f"{FILE}: {stem}: a length of each direction, and no other")
            rows = tensor.float().flatten(1)
            lengths = lengths.float().flatten(1) / rows.norm(dim=1, keepdim=True)
            yield f"{stem}.weight", (rows * lengths).view(tensor.shape)


def _split_fused(tensors: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield tensors with the names and parts of a `SlidingTransformer`'s layers."""
    for name, tensor in tensors.items():
        before, found, part = name.rpartition("attention.wqkv")
        if found and part == ".weight":
            for which, rows in _split(name, tensor, tensors.get(f"{before}attention.wo.weight")):
                turned = rows if which == "v" else pairs_as_halves(rows, HEAD_DIM)
                yield f"{before}self_attn.{which}_proj.weight", turned
            continue
        published = next((each for each in RENAMED if name.endswith(f".{each}")), None)
        if published is None:
            yield name, tensor
        else:
            yield name.removesuffix(published) + RENAMED[published], tensor


def _split(
    name: str, fused: torch.Tensor, output: torch.Tensor | None
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the projections of queries, keys and values.

    Args:
        name: of the fused tensor.
        fused: [queries + keys + values, inputs].
        output: [inputs, queries], the projection behind the attention.
    """
    queries = 0 if output is None else output.shape[-1]
    keys, rest = divmod(len(fused) - queries, 2)
    if queries < HEAD_DIM or keys < HEAD_DIM or rest or queries % HEAD_DIM or keys % HEAD_DIM:
        raise ConfigError(
            f"{FILE}: {name} of {list(fused.shape)} and attention.wo are not of heads of {HEAD_DIM}"
        )
    yield from zip("qkv", torch.split(fused, [queries, keys, keys]), strict=True)


SEMANTIC, RESIDUAL = "quantizer.semantic_quantizer", "quantizer.quantizer"
QUANTIZERS = (f"{SEMANTIC}.", f"{RESIDUAL}.")
"""What their tensors' names begin with."""


class Codebook:
    """One codebook; every entry is projected once, on loading."""

    def __init__(self, weights: Weights, name: str, shape: tuple[int, ...], latent: int) -> None:
        size, width = shape
        entries = weights.take(f"{name}.codebook.weight", size, width)
        out = weights.take(f"{name}.out_proj.weight", latent, width, 1)[..., 0]
        bias = weights.take(f"{name}.out_proj.bias", latent)
        # Rounded once: a table must not depend on how a product adds.
        self.latents = (entries.double() @ out.double().t()).float() + bias
        """[V, N]."""
        into = weights.take(f"{name}.in_proj.weight", width, latent, 1)[..., 0]
        self._into = Linear(into, weights.take(f"{name}.in_proj.bias", width))
        self._directions = Linear(functional.normalize(entries))

    def nearest(self, latents: torch.Tensor) -> torch.Tensor:
        """[T, N] -> [T] int64. A latent's length does not change which cosine is the largest."""
        return self._directions(self._into(latents)).argmax(dim=-1)


class Codebooks:
    """All codebooks, the semantic one first."""

    def __init__(self, tensors: CodecTensors, weights: Weights) -> None:
        books = [
            f"{part}.quantizers.{index}"
            for part in (SEMANTIC, RESIDUAL)
            for index in range(tensors.count(f"{part}.quantizers", "codebook.weight"))
        ]
        shapes = [tensors.shape(f"{book}.codebook.weight", 2) for book in books]
        self.sizes = tuple(shape[0] for shape in shapes)
        self.latent_dim = tensors.shape(f"{SEMANTIC}.quantizers.0.out_proj.weight", 3)[0]
        self._books = [
            Codebook(weights, book, shape, self.latent_dim)
            for book, shape in zip(books, shapes, strict=True)
        ]
        self._last = torch.tensor(self.sizes, device=self._books[0].latents.device) - 1

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, T, Q] codes -> [B, T, N]. A code that a codebook lacks becomes its last one."""
        known = torch.minimum(codes, self._last)
        total = self._books[0].latents[known[..., 0]]
        for index, book in enumerate(self._books[1:], start=1):
            total = total + book.latents[known[..., index]]
        return total

    def encode(self, latents: torch.Tensor) -> torch.Tensor:
        """[T, N] -> [T, Q] int64; each codebook describes what the ones before it left."""
        codes = []
        for book in self._books:
            codes.append(book.nearest(latents))
            latents = latents - book.latents[codes[-1]]
        return torch.stack(codes, dim=-1)


TRANSFORMER, UPSAMPLE, WAVE = "quantizer.post_module", "quantizer.upsample", "decoder.model"
PARTS = (*QUANTIZERS, f"{TRANSFORMER}.", f"{UPSAMPLE}.", f"{WAVE}.")
FRAME_WINDOW = 128
"""Frames that a frame attends to, itself included."""


class FishDecoder(CausalDecoder):
    """The codec as a decoder of codes.

    Args:
        checkpoint: the folder of codec.pth.
        device: where it runs.
        codes: that a talker may choose.
        semantic: how many of these are semantic tokens. The others are decoded as code 0.

    Raises:
        ConfigError: (on construction) the folder holds no such codec.
    """

    recordable = True
    sample_rate, channels = SAMPLE_RATE, 1

    def __init__(self, checkpoint: Path, device: torch.device, codes: int, semantic: int) -> None:
        tensors = CodecTensors(checkpoint, PARTS)
        weights = tensors.weights(device)
        self._codebooks = Codebooks(tensors, weights)
        self.num_codebooks = len(self._codebooks.sizes)
        super().__init__(torch.zeros(1, 1, self.num_codebooks, dtype=torch.int64, device=device))
        self.codebook_size, self._semantic = codes, semantic
        latent = self._codebooks.latent_dim
        sizes = tensors.transformer(TRANSFORMER, FRAME_WINDOW)
        self._transformer = SlidingTransformer(
            weights, TRANSFORMER, sizes, device, rotation=RoundedRotation
        )
        self._upsamplers = []
        self.samples_per_frame = 1
        for index in range(tensors.count(UPSAMPLE, "0.conv.weight")):
            name = f"{UPSAMPLE}.{index}"
            rate = tensors.shape(f"{name}.0.conv.weight", 3)[2]
            upsample = CausalUpsample(weights, f"{name}.0.conv", latent, latent, rate, rate)
            self._upsamplers.append((upsample, CausalConvNextBlock(weights, f"{name}.1", latent)))
            self.samples_per_frame *= rate
        width = tensors.shape(f"{WAVE}.0.conv.weight", 3)[0]
        self._widen = CausalConv(weights, f"{WAVE}.0.conv", latent, width, 7)
        self._stages = []
        last = 1
        while f"{WAVE}.{last}.block.1.conv.weight" in tensors:
            inputs, outputs, kernel = tensors.shape(f"{WAVE}.{last}.block.1.conv.weight", 3)
            self._stages.append(
                FishWaveStage(weights, f"{WAVE}.{last}", inputs, outputs, kernel // 2)
            )
            self.samples_per_frame *= kernel // 2
            width, last = outputs, last + 1
        self._snake = Snake(weights, f"{WAVE}.{last}", width)
        self._wave = CausalConv(weights, f"{WAVE}.{last + 1}.conv", width, 1, 7)

    def _run(self, codes: torch.Tensor, past: ConvCache) -> torch.Tensor:
        spoken = codes.clone()
        spoken[..., 0].masked_fill_(codes[..., 0] >= self._semantic, 0)
        x = self._transformer(self._codebooks.decode(spoken), past)
        for upsample, refine in self._upsamplers:
            x = refine(upsample(x, past), past)
        x = self._widen(x, past)
        for stage in self._stages:
            x = stage(x, past)
        return self._wave(self._snake(x), past).tanh()


def load_decoder(checkpoint: Path, device: torch.device) -> FishDecoder:
    """Return the checkpoint's streaming decoder in fp32.

    Raises:
        ConfigError: the folder holds no such checkpoint, or its codec does not fit its talker.
    """
    config = load_config(checkpoint)
    decoder = FishDecoder(checkpoint, device, config.first_codes, config.codebook_size)
    check_codec(config, checkpoint, decoder.num_codebooks, decoder.samples_per_frame)
    return decoder
