"""The goldens are effective: a fault anywhere in the decoder fails a check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cantata_models.qwen25_omni.random_checkpoint import TINY, write_checkpoint
from cantata_models.qwen25_omni.tests.parity.scenarios import TOKEN2WAV_SEED
from cantata_models.qwen25_omni.tests.token2wav_checks import (
    PACKAGE,
    check_whole,
    check_windows,
)
from source_faults import Mutant, assert_caught, each_mutant, mutants
from threads import threads

MODULES = (
    f"{PACKAGE}.dit",
    f"{PACKAGE}.vocoder",
    f"{PACKAGE}.token2wav",
)
"""Modules in import order."""

MUTANTS = (
    *mutants(
        f"{PACKAGE}.dit",
        check_whole,
        ("return even - (torch.cos(torch.pi / 2 * even) - 1 + even)", "return even"),
        ("(second - third * first)", "(second - 2 * third * first)"),
        ("(first + 3 * (second + later) + last)", "(2 * (first + second + later + last))"),
    ),
    *mutants(
        f"{PACKAGE}.dit",
        check_whole,
        ("GUIDANCE = 0.5", "GUIDANCE = 0.4"),
        ("int(index in config.look_ahead)", "0"),
        ("int(index in config.look_backward)", "0"),
        ("(apart >= -back) & (apart <= ahead)", "(apart >= -ahead) & (apart <= back)"),
        ("[rotation(x[:, :, :1]), x[:, :, 1:]]", "[x[:, :, :1], rotation(x[:, :, 1:])]"),
        ("Linear(weight[order], ", "Linear(weight, "),
        ("vector, torch.zeros_like(vector)", "vector, vector"),
        ("mel, torch.zeros_like(mel)", "mel, mel"),
        ("torch.full_like(codes, NO_CODE)", "torch.full_like(codes, 1)"),
        ("scale, shift = self._last_modulation", "shift, scale = self._last_modulation"),
        ('approximate="tanh"', 'approximate="none"'),
    ),
    *mutants(
        f"{PACKAGE}.vocoder",
        check_whole,
        ("FLOOR_DB = -115.0", "FLOOR_DB = -100.0"),
        ("cut = 2 * edge + edge", "cut = 2 * edge + edge + 1"),
        ("0.1102 * (attenuation - 8.7)", "0.1102 * attenuation"),
        ("x = x + plain(", "x = plain("),
        (".mean(dim=0)", ".sum(dim=0)"),
    ),
    *mutants(
        f"{PACKAGE}.token2wav",
        check_windows,
        ("VOCODER_CONTEXT = 20", "VOCODER_CONTEXT = 12"),
        ("3, 2, 1\n", "3, 1, 1\n"),
        ("3, 2, 1\n", "2, 2, 1\n"),
        ("[past * dit.repeats :]", "[: len(codes) * dit.repeats]"),
        ("stream.blocks += -(-len(new) // block_codes)", "stream.blocks += 2"),
        ("seen[-2 * VOCODER_CONTEXT :]", "seen[-VOCODER_CONTEXT:]"),
    ),
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("checkpoint"), TINY, TOKEN2WAV_SEED)


@pytest.mark.thorough(every=6)
@each_mutant(MUTANTS)
def test_a_fault_is_caught(mutant: Mutant, checkpoint: Path) -> None:
    assert_caught(mutant, MODULES, checkpoint)
