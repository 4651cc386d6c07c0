"""The goldens are effective: a fault in code2wav, in prompts or in features fails a check."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cantata_layers.omni.preprocessor_config import load_preprocessor_config
from cantata_models.qwen3_omni.random_checkpoint import write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import TINY
from cantata_models.qwen3_omni.tests.parity.scenarios import GOLDENS, SCENARIOS
from cantata_models.qwen3_omni.tests.parity.write_goldens import PCM_STRIDE
from source_faults import Mutant, assert_caught, each_mutant, mutants
from threads import threads

PACKAGE = "cantata_models.qwen3_omni"
DECODER = f"{PACKAGE}.code2wav"
SHARED = "cantata_layers.omni"
INPUTS, POSITIONS = f"{SHARED}.inputs", f"{SHARED}.positions"
PREPROCESS, LAYOUT = f"{SHARED}.preprocess", f"{SHARED}.prompt"
CONFIG, PROMPT = f"{PACKAGE}.config", f"{PACKAGE}.prompt"
MODULES = (
    CONFIG,
    DECODER,
    INPUTS,
    POSITIONS,
    PREPROCESS,
    LAYOUT,
    PROMPT,
)
"""In import order."""


def check_sound(checkpoint: Path) -> None:
    """The reference's sound of one answer, in pieces."""
    decoder = importlib.import_module(DECODER).Code2Wav(checkpoint, torch.device("cpu"))
    with np.load(GOLDENS / "omni.npz") as goldens:
        codes = torch.from_numpy(goldens["text/codes"].astype(np.int64))[None]
        wave = goldens["text/wave"]
    state, slot = decoder.init_state(1), torch.tensor([0])
    parts = [decoder.decode(state, slot, part) for part in torch.split(codes, [1, 2, 21], dim=1)]
    samples = torch.cat(parts, dim=1)[0, decoder.leading_silence :, 0].numpy()
    np.testing.assert_allclose(samples[::PCM_STRIDE], wave, rtol=0, atol=1e-4)


def check_prompts(checkpoint: Path) -> None:
    """The reference's tokens and positions of all dialogues, of thinker and talker."""
    prompts = _prompts(checkpoint)
    with np.load(GOLDENS / "omni.npz") as goldens:
        for scenario in SCENARIOS:
            prompt = prompts.build(scenario.messages)
            np.testing.assert_array_equal(prompt.tokens, goldens[f"{scenario.name}/tokens"])
            theirs = goldens[f"{scenario.name}/positions"]
            np.testing.assert_array_equal(prompt.positions, theirs)
            if scenario.speaker is not None:
                ours = prompts.select_user_turns(prompt).positions
                theirs = goldens[f"{scenario.name}/talker_positions"]
                np.testing.assert_array_equal(ours, theirs)


def _prompts(checkpoint: Path) -> Any:
    load = importlib.import_module(CONFIG).load_config
    config, preprocess = load(checkpoint), importlib.import_module(PREPROCESS)
    rules = preprocess.SoundRules(importlib.import_module(INPUTS).sound_rows)
    fields = load_preprocessor_config(checkpoint)
    preprocessor = preprocess.Preprocessor(fields, config.thinker.vision, rules)
    return importlib.import_module(PROMPT).Qwen3OmniPromptBuilder(checkpoint, config, preprocessor)


MUTANTS = (
    *mutants(
        DECODER,
        check_sound,
        ("lag=(self.lag + lags) * rate", "lag=self.lag * rate + lags"),
        ("places < first[:, None]", "places < first[:, None] - 1"),
        ("if not self.begins or not self.lag:", "if self.lag < 555:"),
    ),
    *mutants(
        DECODER,
        check_sound,
        ("codes[..., book] + self._first[book]", "codes[..., book]"),
        ("return total / self.num_codebooks", "return total"),
        ("x = lead.silenced(unit(x, past))", "x = unit(x, past)"),
        ("self._wave(self._snake(x), past)", "self._wave(x, past)"),
    ),
    *mutants(
        CONFIG,
        check_sound,
        ('**fields.items("rope_parameters")}', '"sliding_window": 20}'),
        ('**fields.items("rope_parameters")}', '"rope_theta": 9_000.0}'),
    ),
    *mutants(
        INPUTS,
        check_prompts,
        ("rest = -(-rest // 2)", "rest = rest // 2"),
    ),
    *mutants(
        INPUTS,
        check_prompts,
        ("self.time * self.height * self.width // merge_size**2", "self.height * self.width // 4"),
    ),
    *mutants(
        PREPROCESS,
        check_prompts,
        ("self._config.pixels)", "PixelLimits(16_384, 1 << 30))"),
        ("seconds_per_step=together / video.fps", "seconds_per_step=1 / video.fps"),
    ),
    *mutants(
        POSITIONS,
        check_prompts,
        ("parts[-1][:, -1].max() + np.float32(1)", "parts[-1][:, -1].max()"),
        ("np.stack([time, line, column])", "np.stack([time, column, line])"),
        ("time * np.float32(media.seconds_per_step)", "time"),
        ("place, paired = placement.end, pairs", "place, paired = placement.end + 1, pairs"),
    ),
    *mutants(
        LAYOUT,
        check_prompts,
        ('text = f"{message.role}\\n"', 'text = f"{message.role} "'),
    ),
    *mutants(
        PROMPT,
        check_prompts,
        ("np.flatnonzero(turns == ids.user)", "np.flatnonzero(turns != ids.assistant)"),
        ("len(tokens) + ANSWER_ROWS, placements", "len(tokens) + ANSWER_ROWS, ()"),
    ),
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("checkpoint"), TINY, 1)


@pytest.mark.parametrize("check", [check_sound, check_prompts])
def test_without_a_fault_the_checks_pass(check: Any, checkpoint: Path) -> None:
    check(checkpoint)


@pytest.mark.thorough(every=6)
@each_mutant(MUTANTS)
def test_a_fault_is_caught(mutant: Mutant, checkpoint: Path) -> None:
    assert_caught(mutant, MODULES, checkpoint)
