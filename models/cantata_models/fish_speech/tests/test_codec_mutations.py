"""The codec's statement is effective: it detects each fault in a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cantata_layers import causal_convolutions
from cantata_layers.causal_convolutions import ConvCache
from cantata_models.fish_speech import codec, encoder, networks
from cantata_models.fish_speech.random_checkpoint import TINY_S2, write_checkpoint
from cantata_models.fish_speech.tests import codec_checks
from threads import threads

LONG, SHORT = 6.2, 1.1
"""Seconds of the recordings."""
BOOKS, BLOCKS = "codebooks that describe the whole", "blocks that forget"
SEEN_SOON = (BOOKS, BLOCKS)
Inject = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("s2"), TINY_S2, 1)


def setting(owner: object, name: str, value: object) -> Inject:
    """Replace an attribute."""
    return lambda patch: patch.setattr(owner, name, value)


def with_sizes(**changed: Any) -> Callable[..., codec.TransformerSizes]:
    """Make sizes of which some differ."""
    sizes = codec.TransformerSizes

    def make(**named: Any) -> codec.TransformerSizes:
        return replace(sizes(**named), **changed)

    return make


def unclamped(self: codec.Codebooks, codes: torch.Tensor) -> torch.Tensor:
    """Codes beyond a codebook begin again, where they should become its last."""
    books = zip(self._books, codes.unbind(-1), self.sizes, strict=True)
    return torch.stack([book.latents[code % size] for book, code, size in books]).sum(0)


def last_book_left_out(self: codec.Codebooks, codes: torch.Tensor) -> torch.Tensor:
    total = DECODE(self, codes)
    return total - self._books[-1].latents[codes[..., -1].clamp(max=self.sizes[-1] - 1)]


def earlier_tap(
    self: causal_convolutions.CausalConv, x: torch.Tensor, past: ConvCache
) -> torch.Tensor:
    made = CONVOLVE(self, x, past)
    return made.roll(1, dims=1) if self._dilation == 3 else made


def unscaled_residual(self: codec.Codebooks, latents: torch.Tensor) -> torch.Tensor:
    """Each codebook describes the whole."""
    return torch.stack([book.nearest(latents) for book in self._books], dim=-1)


def forgetful(positions: torch.Tensor, histories: list[torch.Tensor] | None) -> ConvCache:
    """Each block of a recording begins in silence."""
    return ConvCache(positions, None)


DECODE, CONVOLVE = codec.Codebooks.decode, causal_convolutions.CausalConv.__call__
DECODER_FAULTS: dict[str, Inject] = {
    "a shorter window": setting(codec, "FRAME_WINDOW", 127),
    "tables not rounded": setting(networks, "rounded", lambda table: table),
    "rotation by halves": setting(codec, "pairs_as_halves", lambda rows, width: rows),
    "another theta": setting(codec, "TransformerSizes", with_sizes(rope_theta=20_000.0)),
    "another epsilon of norms": setting(codec, "TransformerSizes", with_sizes(rms_norm_eps=1e-3)),
    "another epsilon of layer norms": setting(causal_convolutions, "LAYER_NORM_EPS", 1e-3),
    "codes begin again": setting(codec.Codebooks, "decode", unclamped),
    "the last codebook left out": setting(codec.Codebooks, "decode", last_book_left_out),
    "other dilations": setting(codec, "DILATIONS", (1, 3, 8)),
    "a convolution late": setting(causal_convolutions.CausalConv, "__call__", earlier_tap),
    "snakes a little flatter": setting(causal_convolutions, "SNAKE_EPS", 1e-2),
    "layer scales swapped": setting(
        codec,
        "RENAMED",
        {
            **codec.RENAMED,
            "attention_layer_scale.gamma": "mlp_layer_scale.scale",
            "ffn_layer_scale.gamma": "self_attn_layer_scale.scale",
        },
    ),
}
ENCODER_FAULTS: dict[str, Inject] = {
    "a shorter window of the wave": setting(encoder, "WAVE_WINDOW", 480),
    BOOKS: setting(codec.Codebooks, "encode", unscaled_residual),
    "tables not rounded": setting(networks, "rounded", lambda table: table),
    BLOCKS: setting(encoder, "ConvCache", forgetful),
}


def failing_check(check: Callable[[Path], None], checkpoint: Path) -> bool:
    try:
        check(checkpoint)
    except AssertionError:
        return True
    return False


@pytest.mark.thorough(every=6)
@pytest.mark.parametrize("name", DECODER_FAULTS)
def test_each_fault_of_the_decoder_is_seen(
    name: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DECODER_FAULTS[name](monkeypatch)
    assert failing_check(codec_checks.check_decoded, checkpoint)


@pytest.mark.thorough(every=6)
@pytest.mark.parametrize("name", ENCODER_FAULTS)
def test_each_fault_of_the_encoder_is_seen(
    name: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ENCODER_FAULTS[name](monkeypatch)
    seconds = SHORT if name in SEEN_SOON else LONG
    assert failing_check(lambda folder: codec_checks.check_encoded(folder, seconds), checkpoint)
