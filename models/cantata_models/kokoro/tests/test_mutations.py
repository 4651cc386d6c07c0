"""The goldens are effective: a fault anywhere in the networks fails a check."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cantata_models.kokoro.tests.network_driver import MODULES, differences, speak_whole
from cantata_models.kokoro.tests.parity.scenarios import KokoroCheckpointKey, scenario_named
from source_faults import Mutant, injected, mutants

KOKORO = "cantata_models.kokoro"
Folders = dict[KokoroCheckpointKey, Path]


def differing(name: str, folders: Folders) -> list[str]:
    """Where a scenario differs from the reference's."""
    scenario = scenario_named(name)
    return differences(speak_whole(folders[scenario.checkpoint], scenario), scenario)


def _faults() -> Iterator[tuple[str, Mutant]]:
    """The scenario that notices each."""

    def faults(scenario: str, module: str, *pairs: tuple[str, str]) -> Iterator[tuple[str, Mutant]]:
        unused: Callable[[Path], None] = lambda folder: None  # noqa: E731
        for mutant in mutants(f"{KOKORO}.{module}", unused, *pairs):
            yield scenario, mutant

    yield from faults(
        "sentence",
        "text_network",
        ("gain = 1 + gain\n", "gain = 1 - gain\n"),
        ("weight=1 + gain", "weight=gain"),
        ("_HALF_POWER = 0.5**0.5", "_HALF_POWER = 0.5"),
        ("BLOCK_SLOPE = 0.2", "BLOCK_SLOPE = 0.1"),
        ("x.repeat_interleave(2, dim=-1)", "x.repeat(1, 1, 2)"),
        ("wave, wave / alpha", "wave, wave"),
        ("(bias - mean * scale)", "bias"),
        ("        x = x + conv2(", "        x = conv2("),
    )
    yield from faults("affine", "text_network", ("gain * self.norm.bias", "self.norm.bias"))
    yield from faults(
        "sentence",
        "sound_network",
        ("AMPLITUDE = 0.1", "AMPLITUDE = 0.12"),
        ("BREATH = 0.003", "BREATH = 0.004"),
        ("MIN_PITCH_HZ = 10.0", "MIN_PITCH_HZ = 40.0"),
        ("AMPLITUDE / 3", "AMPLITUDE / 2"),
        ('mode="linear"', 'mode="nearest"'),
        ("torch.arange(1, HARMONICS + 1", "torch.arange(HARMONICS"),
        ("[spectra.abs(), spectra.angle()]", "[spectra.angle(), spectra.abs()]"),
    )
    yield from faults(
        "sentence",
        "text_network",
        (" + kind + places", " + places"),
        ("range(self._layers)", "range(self._layers - 1)"),
        ('self.LayerNorm(x + self.get_submodule("dense")(joined))', "self.LayerNorm(joined)"),
        ("TEXT_SLOPE = 0.2", "TEXT_SLOPE = 0.1"),
        ("torch.round(", "torch.floor("),
        ("(self.F0, self.F0_proj), (self.N", "(self.N, self.F0_proj), (self.F0"),
        ("[norm(lstm(x)[0], style), styles]", "[styles, norm(lstm(x)[0], style)]"),
    )
    yield from faults("slow", "text_network", ("/ speed", "* speed"))
    yield from faults("longest", "text_network", ("clamp(min=1)", "clamp(min=2)"))
    yield from faults(
        "sentence",
        "sound_network",
        ("UPSAMPLING_SLOPE, LAST_SLOPE = 0.1, 0.01", "UPSAMPLING_SLOPE, LAST_SLOPE = 0.2, 0.01"),
        ("UPSAMPLING_SLOPE, LAST_SLOPE = 0.1, 0.01", "UPSAMPLING_SLOPE, LAST_SLOPE = 0.1, 0.1"),
        ('(1, 0), mode="reflect"', '(0, 1), mode="reflect"'),
        ("torch.sin(x[:, bins:])", "x[:, bins:]"),
        ("made[0]) / each", "made[0])"),
        ("[x, skipped, *curves]", "[skipped, x, *curves]"),
        ("SOURCE_DILATIONS = (1, 3, 5)", "SOURCE_DILATIONS = (1, 3, 3)"),
        ("x = x + excited", "x = x - excited"),
    )
    yield from faults(
        "sentence",
        "checkpoint",
        ("style[:, self.config.style :]", "style[:, : self.config.style]"),
        ("length.flatten() / norms", "length.flatten()"),
        ("text = self.text_encoder(row)", "text = self.text_encoder(row.flip(1))"),
    )
    yield from faults("another_style", "voice", ("[count - 1]", "[count]"))
    yield from faults("blend", "voice", ("weight * row", "row / 2"))


FAULTS = tuple(_faults())


def describe(case: tuple[str, Mutant]) -> str:
    return f"{case[1].module.removeprefix(KOKORO)[1:]}: {case[1].wrong.strip()}"


@pytest.mark.thorough(every=6)
@pytest.mark.parametrize("case", FAULTS, ids=describe)
def test_a_scenario_notices(checkpoints: Folders, case: tuple[str, Mutant]) -> None:
    scenario, mutant = case
    for module in MODULES:
        importlib.import_module(module)
    with injected(mutant, MODULES):
        assert differing(scenario, checkpoints)


def test_without_a_fault_none_differs(checkpoints: Folders) -> None:
    for name in sorted({scenario for scenario, _ in FAULTS}):
        assert differing(name, checkpoints) == [], name
