"""The talker's goldens are effective: a scenario detects each fault in a list.

`test_talker.py` shows that no scenario differs from its golden without a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cantata_models.qwen25_omni.tests.talker_driver import (
    Qwen25OmniTalkers,
    differences,
    scenario_named,
)
from faults import Faults, Inject
from model_engines import checkpoints_fixture

pytestmark = pytest.mark.vllm
talkers = checkpoints_fixture(Qwen25OmniTalkers, "module")

fault = Faults[Any]()


def _change_rows(
    talker: Any, patch: pytest.MonkeyPatch, change: Callable[[Any], dict[str, torch.Tensor]]
) -> None:
    """Replace some of the rows that are not the thinker's."""
    begin = talker.open

    def changed(inputs: Any) -> Any:
        source = begin(inputs)
        source._fixed = replace(source._fixed, **change(source._fixed))
        return source

    patch.setattr(talker, "open", changed)


@fault("text")
def no_start_code(talker: Any, patch: pytest.MonkeyPatch) -> None:
    _change_rows(talker, patch, lambda fixed: {"start": torch.zeros_like(fixed.start)})


@fault("text")
def pad_code_missing_beside_the_speaker(talker: Any, patch: pytest.MonkeyPatch) -> None:
    pad = talker.codes.weight[talker._config.talker.codec.pad].detach()
    _change_rows(talker, patch, lambda fixed: {"speaker": fixed.speaker - pad})


@fault("other speaker")
def always_the_first_speaker(talker: Any, patch: pytest.MonkeyPatch) -> None:
    begin = talker.open
    patch.setattr(talker, "open", lambda inputs: begin(replace(inputs, speaker="Chelsie")))


@fault("text")
def no_end_of_text(talker: Any, patch: pytest.MonkeyPatch) -> None:
    _change_rows(talker, patch, lambda fixed: {"end": fixed.pad})


@fault("text")
def text_ends_for_ever(talker: Any, patch: pytest.MonkeyPatch) -> None:
    _change_rows(talker, patch, lambda fixed: {"pad": fixed.end})


@fault("system")
def prompt_without_its_first_row(talker: Any, patch: pytest.MonkeyPatch) -> None:
    begin, project = talker.open, talker._project

    def changed(inputs: Any) -> Any:
        source = begin(replace(inputs, prompt_rows=inputs.prompt_rows - 1))
        source._project = lambda rows: project(rows[1:])
        return source

    patch.setattr(talker, "open", changed)


@fault("two turns")
def answer_begins_a_row_late(talker: Any, patch: pytest.MonkeyPatch) -> None:
    begin = talker.open
    patch.setattr(
        talker,
        "open",
        lambda inputs: begin(replace(inputs, prompt_rows=inputs.prompt_rows + 1)),
    )


@fault("text")
def projection_without_bias(talker: Any, patch: pytest.MonkeyPatch) -> None:
    bias = talker.thinker_to_talker_proj.bias
    patch.setattr(bias, "data", torch.zeros_like(bias.data))


@fault("text")
def bias_in_every_code(talker: Any, patch: pytest.MonkeyPatch) -> None:
    bias, embed = talker.thinker_to_talker_proj.bias, talker.embed_frames
    patch.setattr(talker, "embed_frames", lambda frames: embed(frames) + bias)


@fault("text")
def attention_without_biases(talker: Any, patch: pytest.MonkeyPatch) -> None:
    for layer in talker.layers:
        bias = layer.self_attn.qkv_proj.bias
        patch.setattr(bias, "data", torch.zeros_like(bias.data))


@fault("text")
def another_rope_theta(talker: Any, patch: pytest.MonkeyPatch) -> None:
    frequencies = talker.rotation.inverse_frequencies
    half = len(frequencies)
    patch.setattr(frequencies, "data", 20_000.0 ** -(torch.arange(half) / half))


@fault("picture")
def every_frequency_turns_by_time(talker: Any, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talker.rotation.axes, "data", torch.zeros_like(talker.rotation.axes))


@fault("picture")
def height_and_width_swapped(talker: Any, patch: pytest.MonkeyPatch) -> None:
    begin = talker.open

    def changed(inputs: Any) -> Any:
        return begin(replace(inputs, positions=inputs.positions[[0, 2, 1]]))

    patch.setattr(talker, "open", changed)


@fault("picture")
def answer_counts_on_from_the_prompt_s_length(talker: Any, patch: pytest.MonkeyPatch) -> None:
    begin = talker.open

    def changed(inputs: Any) -> Any:
        positions = inputs.positions.copy()
        positions[:, -2:] = np.arange(inputs.prompt_rows, inputs.prompt_rows + 2)
        return begin(replace(inputs, positions=positions))

    patch.setattr(talker, "open", changed)


@fault("pad code")
def pad_code_does_not_end(talker: Any, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talker, "complete_frames", lambda hidden, code0, draws: code0[:, None])


@fault("prompt penalty")
def prompt_not_penalized(talker: Any, patch: pytest.MonkeyPatch) -> None:
    step = talker.talker_step
    patch.setattr(step, "_prompt_codes", step._prompt_codes[:0])


@fault.each
def test_each_fault_is_seen(
    talkers: Qwen25OmniTalkers,
    name: str,
    inject: Inject[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = scenario_named(name)
    stage: Any = talkers.stage(scenario.seed)
    inject(stage._talker, monkeypatch)
    assert differences(stage, scenario) != []
