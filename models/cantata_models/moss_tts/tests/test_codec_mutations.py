"""The goldens are effective: a fault anywhere in the tokenizers fails a check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cantata_models.moss_tts.tests.codec_checks import (
    PACKAGE,
    check_encoded,
    check_streamed,
    check_whole,
    write_checkpoints,
)
from source_faults import Mutant, assert_caught, each_mutant, mutants
from threads import threads

MODULES = (
    f"{PACKAGE}.tokenizer_config",
    f"{PACKAGE}.codec_layers",
    f"{PACKAGE}.quantizer",
    f"{PACKAGE}.codec",
    f"{PACKAGE}.encoder",
)
"""Modules in import order."""

MUTANTS = (
    *mutants(
        f"{PACKAGE}.tokenizer_config",
        check_whole,
        ("self._frame * seconds)", "self._frame * seconds) + 1"),
        ("self._frame * seconds)", "self._frame * seconds) - 1"),
        ("self._frame * seconds)", "self._frame * self._duration)"),
        ('fields.get("max_period", float, 10_000.0)', "9_000.0"),
    ),
    *mutants(
        f"{PACKAGE}.tokenizer_config",
        check_encoded,
        ("self._frame * seconds)", "self._frame * seconds) + 1"),
        ("self._frame * seconds)", "self._frame * seconds) - 1"),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_encoded,
        ("return window - 1 + positions", "return window - 2 + positions"),
        ("numbers % length, torch", "(numbers + 1) % length, torch"),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_encoded,
        ("Linear(_reorder_pairs(joined, config))", "Linear(joined)"),
        ('weights.take(f"{layer}.{scale}.scale", outputs)[:, None] * weight', "weight"),
        ("LAYER_NORM_EPS = 1e-5", "LAYER_NORM_EPS = 1e-2"),
        ("functional.gelu(", "functional.silu("),
        ("frames * self._config.frame_positions, x", "0 * frames, x"),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_whole,
        ("channels // size, size)", "size, channels // size)"),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_encoded,
        (
            "x.view(batch, length // size, size, channels)",
            "x.view(batch, length // size, channels, size)",
        ),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_whole,
        ("(held[:, None] <= last)", "(held[:, None] < last)"),
        ("(held[:, None] <= last)", "(held[:, None] <= latest[..., None])"),
        (".clamp(min=0)", ""),
        ("attn_mask=mask", "attn_mask=mask, scale=0.5"),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_streamed,
        ("return window - 1 + positions", "return window - 2 + positions"),
        ("self.values[where] = key, value", "self.values[where] = key, key"),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_whole,
        ("by_pair.transpose(1, 2)", "by_pair"),
        ("Linear(_reorder_pairs(joined, config))", "Linear(joined)"),
        ('weights.take(f"{layer}.{scale}.scale", outputs)[:, None] * weight', "weight"),
        ("LAYER_NORM_EPS = 1e-5", "LAYER_NORM_EPS = 1e-2"),
        ("self._gain, self._bias, LAYER", "self._gain, None, LAYER"),
        ("functional.gelu(", "functional.silu("),
        ("before + start, self._arriving", "before, self._arriving"),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_streamed,
        ("frames * self._config.frame_positions, x", "0 * frames, x"),
    ),
    *mutants(
        f"{PACKAGE}.codec_layers",
        check_streamed,
        ("state.frames[slots] = before + frames", "state.frames[slots] = before + 1"),
    ),
    *mutants(
        f"{PACKAGE}.quantizer",
        check_whole,
        ("total + table[codes[..., book]]", "total + table[codes[..., 0]]"),
        (
            "_Entries(weights, index, config).residuals",
            "_Entries(weights, index, config).residuals.roll(int(index == 1), 0)",
        ),
        ("total = self._bias", "total = 0 * self._bias"),
        ("length * rows /", "rows /"),
        ("_multiply(self.own, weight) + bias", "_multiply(self.own, weight)"),
    ),
    *mutants(
        f"{PACKAGE}.quantizer",
        check_encoded,
        ("functional.normalize(entries.own)", "entries.own"),
        ("residual - book.residuals[nearest]", "residual"),
        ("/ rows.norm(dim=1, keepdim=True)", ""),
    ),
    *mutants(
        f"{PACKAGE}.codec",
        check_whole,
        (
            "self.samples_per_frame, self.channels)",
            "self.samples_per_frame, self.channels).flip(2)",
        ),
        (
            "signal.view(batch, frames * self.samples_per_frame, self.channels)",
            "signal.view(batch, self.channels, -1).transpose(1, 2)",
        ),
    ),
    *mutants(
        f"{PACKAGE}.encoder",
        check_encoded,
        ("part.reshape(1, -1, 1)", "part.t().reshape(1, -1, 1)"),
        ("part.reshape(1, -1, 1)", "part.flip(1).reshape(1, -1, 1)"),
    ),
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoints(tmp_path_factory.mktemp("tokenizers"))


@pytest.mark.thorough(every=6)
@each_mutant(MUTANTS)
def test_a_fault_is_caught(mutant: Mutant, checkpoints: Path) -> None:
    assert_caught(mutant, MODULES, checkpoints)
