"""What stands in a context, and what is asked of one: texts, pictures, a token, a velocity.

Source: `prepare_*` and `forward_cache_update_*` of the publisher's bagel.py.

Letters: T tokens of a text, L tokens of a picture that is seen, N of a picture's latents, P numbers
of such a token, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from cantata_layers.qwen_image.grid import Grid
from cantata_models.bagel.config import load_config
from cantata_models.bagel.network.context import Context
from cantata_models.bagel.network.latents import LatentTokens
from cantata_models.bagel.network.load import Words, load_language, load_latent_tokens
from cantata_models.bagel.network.mixture import ForwardOutput, Mixture, Span
from cantata_models.bagel.network.rotation import Rotations
from cantata_models.bagel.network.vision import table_rows

NO_NOISE = 0.0


class Reader:
    """Reads words, pictures that are seen, and latents.

    Args:
        mixture: the language model.
        words: of the same checkpoint, as the next.
        latents: what is around the weights for drawing.
        rotations: of the positions.
        picture_marks: the tokens around a picture.
    """

    def __init__(
        self,
        mixture: Mixture,
        words: Words,
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
        """Where it computes."""
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
        plain = torch.cat([self._marks, self._given(seen)])
        return self._picture(context, plain, self._nothing)

    def latent_span(
        self, context: Context, latents: torch.Tensor, time: float, places: torch.Tensor
    ) -> Span:
        """[N, P] latents of one picture between its marks, all at one position."""
        drawn = self.latents(self._given(latents), time, places)
        return self._picture(context, self._marks, drawn)

    def kept_span(self, context: Context, latents: torch.Tensor, grid: Grid) -> Span:
        """The same without noise: a picture that stands in the context."""
        return self.latent_span(context, latents, NO_NOISE, self.places(grid))

    def places(self, grid: Grid) -> torch.Tensor:
        """[N] of a picture's tokens in the table of positions."""
        return table_rows(grid, self.latents.side).to(self.device, non_blocking=True)

    def _given(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows from the host, for the network."""
        return rows.to(self.device, self.words.dtype, non_blocking=True)

    def _picture(self, context: Context, plain: torch.Tensor, drawn: torch.Tensor) -> Span:
        """WHY both marks come first: the tokens of a picture see each other at one position, so
        their order means nothing."""
        at, turned = context.position, self._rotations.point
        return Span(
            context, plain, drawn, turned(at, len(plain)), turned(at, len(drawn)), causal=False
        )


def load_reader(
    checkpoint: Path, device: torch.device, dtype: torch.dtype, picture_marks: tuple[int, int]
) -> Reader:
    """Return a checkpoint's language model.

    Raises:
        ConfigError: weights are missing or of another shape.
    """
    config = load_config(checkpoint)
    language = load_language(checkpoint, config, device, dtype)
    latents = load_latent_tokens(checkpoint, config, device, dtype)
    rotations = Rotations(config.language.head, config.language.theta, device)
    return Reader(language.mixture, language.words, latents, rotations, picture_marks)
