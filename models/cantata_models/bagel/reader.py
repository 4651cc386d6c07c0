"""What stands in a context, and what is asked of one: texts, pictures, a token, a velocity.

All weights around and in the language model are loaded here, each part by its published names.
Source: `prepare_*`, `forward_cache_update_*`, `vae2llm`, `llm2vae`, `time_embedder` and
`latent_pos_embed` of the publisher's bagel.py. The sinusoids of time are those of the diffusion
literature (Peebles and Xie, 2023, after Vaswani et al., 2017): cosines, then sines, of the time at
geometric frequencies from 1 down to 1 / 10,000.

Letters: T tokens of a text, L tokens of a picture that is seen, N of a picture's latents, P numbers
of such a token, D width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.row_products import RowLinear
from cantata_layers.checkpoint import read_tensors
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.weights import WeightMap
from cantata_models.bagel.config import WEIGHTS, BagelConfig, LanguageConfig, load_config
from cantata_models.bagel.language_model import Context, ForwardOutput, Mixture, Rotations, Span
from cantata_models.bagel.vision import Vision, table_rows

SINUSOIDS = 256
"""Numbers of a time before the network."""
SLOWEST = 10_000


class LatentTokens(nn.Module):
    """Weights around the language model.

    Args:
        numbers: P.
        width: D.
    """

    def __init__(self, numbers: int, width: int, table: int) -> None:
        super().__init__()
        self.into, self.out = RowLinear(numbers, width), RowLinear(width, numbers)
        self.time_in, self.time_out = RowLinear(SINUSOIDS, width), RowLinear(width, width)
        self.pos_embed = nn.Parameter(torch.empty(table, width))
        self.side = math.isqrt(table)
        """Of the table, in tokens."""

    def forward(self, latents: torch.Tensor, time: float, places: torch.Tensor) -> torch.Tensor:
        """[N, P] -> [N, D].

        Args:
            time: its share of noise, 0 to 1.
            places: [N] in the table of positions.
        """
        return torch.as_tensor(self.into(latents) + self.of_time(time) + self.pos_embed[places])

    def of_time(self, time: float) -> torch.Tensor:
        """[1, D]."""
        weight = self.time_in.weight
        half = torch.arange(SINUSOIDS // 2, dtype=torch.float32, device=weight.device)
        angles = time * torch.exp(-math.log(SLOWEST) * half / len(half))
        waves = torch.cat([angles.cos(), angles.sin()])[None].to(weight.dtype)
        return torch.as_tensor(self.time_out(functional.silu(self.time_in(waves))))

    def velocities(self, x: torch.Tensor) -> torch.Tensor:
        """[N, D] behind the language model -> [N, P] float32: noise minus picture."""
        return torch.as_tensor(self.out(x).float())


MODEL = "language_model.model."
LANGUAGE_NAMES = WeightMap(
    {
        f"{MODEL}embed_tokens.weight": "words.embeddings",
        "language_model.lm_head.weight": "words.head",
        # Each set of weights is a part of its own; published names mark those for latents.
        f"{MODEL}layers.{{}}.mlp_moe_gen.{{}}": "mixture.drawn.layers.{}.mlp.{}",
        f"{MODEL}{{}}_moe_gen.{{}}": "mixture.drawn.{}.{}",
        f"{MODEL}{{}}": "mixture.plain.{}",
    }
)
LATENT_NAMES = WeightMap(
    {
        "vae2llm.{}": "into.{}",
        "llm2vae.{}": "out.{}",
        "time_embedder.mlp.0.{}": "time_in.{}",
        "time_embedder.mlp.2.{}": "time_out.{}",
        "latent_pos_embed.{}": "{}",
    }
)
VISION_NAMES = WeightMap(
    {
        "vit_model.vision_model.embeddings.position_embedding.weight": "position_embedding",
        "vit_model.vision_model.embeddings.patch_embedding.{}": "patch_embedding.{}",
        "vit_model.vision_model.encoder.layers.{}": "layers.{}",
        "vit_model.vision_model.post_layernorm.{}": "post_layernorm.{}",
        "connector.{}": "connector.{}",
        "vit_pos_embed.pos_embed": "pos_embed",
    }
)
LATENT_TABLE, VISION_TABLE = "latent_pos_embed.pos_embed", "vit_pos_embed.pos_embed"
Tensors = dict[str, torch.Tensor]


class WordEmbedding(nn.Module):
    """Embeddings of tokens, and the product that foretells the next one. `width`: D."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embeddings = nn.Parameter(torch.empty(vocabulary, width))
        self.head = nn.Parameter(torch.empty(vocabulary, width))

    @property
    def device(self) -> torch.device:
        return self.embeddings.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embeddings.dtype

    def embedded(self, tokens: Sequence[int]) -> torch.Tensor:
        """[len(tokens), D]."""
        index = torch.tensor(tokens, dtype=torch.long)
        return self.embeddings[index.to(self.device, non_blocking=True)]

    def scores(self, row: torch.Tensor) -> torch.Tensor:
        """[D] behind the last norm -> [tokens] float32."""
        return (self.head @ row).float()


class BagelLanguageModel(nn.Module):
    """The language model, and its words."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.mixture = Mixture(config)
        self.words = WordEmbedding(config.vocabulary, config.width)


def load_language(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> BagelLanguageModel:
    """Load the language model.

    Args:
        dtype: float32 or bfloat16.

    Raises:
        ConfigError: weights are missing or of another shape.
    """
    with torch.device("meta"):
        language = BagelLanguageModel(config.language)
    LANGUAGE_NAMES.fill(
        language, _read_tensors(checkpoint, LANGUAGE_NAMES, device, dtype).items(), checkpoint
    )
    return language


def load_latent_tokens(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> LatentTokens:
    """Return what turns latents into tokens and back; raises as `load_language`."""
    tensors = _read_tensors(checkpoint, LATENT_NAMES, device, dtype)
    numbers = _read_side(tensors, "vae2llm.weight", checkpoint, dim=1)
    rows = _count_rows(tensors, LATENT_TABLE, checkpoint)
    with torch.device("meta"):
        network = LatentTokens(numbers, config.language.width, rows)
    LATENT_NAMES.fill(network, tensors.items(), checkpoint)
    return network


def load_vision(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> Vision:
    """Return the vision transformer with its connector; raises as `load_language`."""
    tensors = _read_tensors(checkpoint, VISION_NAMES, device, dtype)
    rows = _count_rows(tensors, VISION_TABLE, checkpoint)
    with torch.device("meta"):
        vision = Vision(config.vision, config.language.width, rows)
    VISION_NAMES.fill(vision, tensors.items(), checkpoint)
    return vision


def latent_side(checkpoint: Path) -> int:
    """How many tokens a side of a picture may have. Raises ConfigError: as `load_language`."""
    prefix, _, name = LATENT_TABLE.partition(".")
    tensors = dict(read_tensors(checkpoint, f"{prefix}.", WEIGHTS))
    return math.isqrt(_count_rows(tensors, name, checkpoint))


def _read_tensors(
    checkpoint: Path, names: WeightMap, device: torch.device, dtype: torch.dtype
) -> Tensors:
    found = names.read(checkpoint, WEIGHTS)
    return {name: tensor.to(device, dtype) for name, tensor in found}


def _count_rows(tensors: Tensors, table: str, checkpoint: Path) -> int:
    """Rows of a table of positions, which is square."""
    rows = _read_side(tensors, table, checkpoint, dim=0)
    if math.isqrt(rows) ** 2 != rows:
        raise ConfigError(f"{checkpoint}: {table} has {rows} rows, not those of a square")
    return rows


def _read_side(tensors: Tensors, name: str, checkpoint: Path, dim: int) -> int:
    if name not in tensors:
        raise ConfigError(f"{checkpoint}: tensor {name} is missing")
    return int(tensors[name].shape[dim])


NO_NOISE = 0.0


class Reader:
    """Reads words, pictures that are seen, and latents.

    Args:
        words: of the same checkpoint, as the next.
        latents: what is around the weights for drawing.
    """

    def __init__(
        self,
        mixture: Mixture,
        words: WordEmbedding,
        latents: LatentTokens,
        rotations: Rotations,
        picture_marks: tuple[int, int],
    ) -> None:
        self._mixture, self.words, self.latents = mixture, words, latents
        self._rotations = rotations
        self._marks = words.embedded(picture_marks)
        self._nothing = self._marks[:0]

    @property
    def device(self) -> torch.device:
        return self.words.device

    def run(self, spans: Sequence[Span]) -> list[ForwardOutput]:
        """Pass spans through the network, in one forward."""
        output: list[ForwardOutput] = self._mixture(spans)
        return output

    def text_span(self, context: Context, tokens: Sequence[int]) -> Span:
        """[T] tokens, each at a position of its own."""
        line = self._rotations.line(context.position, len(tokens))
        none = self._rotations.point(0, 0)
        return Span(context, self.words.embedded(tokens), self._nothing, line, none, causal=True)

    def seen_span(self, context: Context, seen: torch.Tensor) -> Span:
        """A picture as it is seen, [L, D], between its marks, all at one position."""
        plain = torch.cat([self._marks, self._to_network(seen)])
        return self._read_picture(context, plain, self._nothing)

    def latent_span(
        self, context: Context, latents: torch.Tensor, time: float, places: torch.Tensor
    ) -> Span:
        """[N, P] latents of one picture between its marks, all at one position."""
        drawn = self.latents(self._to_network(latents), time, places)
        return self._read_picture(context, self._marks, drawn)

    def kept_span(self, context: Context, latents: torch.Tensor, grid: Grid) -> Span:
        """A span of latents without noise: a picture that stands in the context."""
        return self.latent_span(context, latents, NO_NOISE, self.places(grid))

    def places(self, grid: Grid) -> torch.Tensor:
        """[N] of a picture's tokens in the table of positions."""
        return table_rows(grid, self.latents.side).to(self.device, non_blocking=True)

    def _to_network(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows from the host, for the network."""
        return rows.to(self.device, self.words.dtype, non_blocking=True)

    def _read_picture(self, context: Context, plain: torch.Tensor, drawn: torch.Tensor) -> Span:
        """WHY both marks come first: the tokens of a picture see each other at one position, so
        their order means nothing."""
        at, turned = context.position, self._rotations.point
        return Span(
            context, plain, drawn, turned(at, len(plain)), turned(at, len(drawn)), causal=False
        )


def load_reader(
    checkpoint: Path, device: torch.device, dtype: torch.dtype, picture_marks: tuple[int, int]
) -> Reader:
    """Return a checkpoint's language model. Raises ConfigError: weights are missing or of another
    shape."""
    config = load_config(checkpoint)
    language = load_language(checkpoint, config, device, dtype)
    latents = load_latent_tokens(checkpoint, config, device, dtype)
    rotations = Rotations(config.language.head, config.language.theta, device)
    return Reader(language.mixture, language.words, latents, rotations, picture_marks)
