"""The goldens are effective: a scenario detects each fault in a list.

A fault is injected into the live talker or into the request's path to it. The scenario registered
for the fault must then differ from its golden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from cantata.contract.model.talker import FrameDraws
from cantata_models.pocket_tts import encoder, flow_head
from cantata_models.pocket_tts.prompt import PocketTalkerInput
from cantata_models.pocket_tts.tests.parity.scenarios import scenario_named
from cantata_models.pocket_tts.tests.stage_driver import (
    PocketCheckpoints,
    PocketStages,
    differs,
    to_frames,
)

pytestmark = [
    pytest.mark.integration,
    # vLLM's imports and start-up cause torch deprecation warnings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

TOLERANCE = 1e-4
PocketFault = Callable[[PocketStages, pytest.MonkeyPatch], None]
FAULTS: dict[str, tuple[str, PocketFault]] = {}
"""Name -> the scenario that detects the fault, and the function that injects it."""


def fault(scenario: str) -> Callable[[PocketFault], PocketFault]:
    """Register a fault that this scenario detects."""

    def register(make: PocketFault) -> PocketFault:
        FAULTS[make.__name__] = (scenario, make)
        return make

    return register


@fault("plain")
def deviation_for_variance(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    _with_draws(loaded, patch, lambda draws: {"options": draws.options.square()})


@fault("clamped")
def noise_is_cut_off(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    def cut(noise: Any, temperature: Any, bound: Any) -> torch.Tensor:
        made: torch.Tensor = noise * temperature.sqrt()
        return torch.minimum(torch.maximum(made, -bound), bound)

    patch.setattr(_talker_module(loaded), "truncate_normal", cut)


@fault("steps")
def one_step_for_all(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    _with_draws(loaded, patch, lambda draws: {"steps": (1,) * len(draws.steps)})


@fault("plain")
def times_are_swapped(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    head = loaded.network.flow_net
    first, second = head.time_embed
    patch.setitem(head._modules, "time_embed", torch.nn.ModuleList([second, first]))


@fault("plain")
def times_are_added(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    head = loaded.network.flow_net
    patch.setattr(head, "_times", {1: 2 * head._embed_times(1)})


@fault("plain")
def the_mean_is_subtracted(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    forward = flow_head.VarianceNorm.forward
    patch.setattr(
        flow_head.VarianceNorm,
        "forward",
        lambda self, x: forward(self, x - x.mean(dim=-1, keepdim=True)),
    )


@fault("small")
def the_noise_is_added(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    head = loaded.network.flow_net
    forward = head.forward
    patch.setattr(head, "forward", lambda noise, *given: noise + forward(noise, *given))


@fault("plain")
def noise_of_the_next_seed(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    _with_noise(loaded, patch, lambda draw, seed, count: draw(seed + 1, count))


@fault("plain")
def the_text_draws_no_noise(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    def begins(draw: Any, seed: int, count: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn((count, loaded.network.noise_size), generator=generator)

    _with_noise(loaded, patch, begins)


@fault("long")
def every_piece_has_one_seed(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    speak = loaded.builder._speak

    def alike(piece: Any, request: Any, options: Any, seed: int) -> PocketTalkerInput:
        return speak(piece, request, options, scenario_named("long").seed)

    patch.setattr(loaded.builder, "_speak", alike)


@fault("recording")
def no_mark_before_a_voice(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.network, "_config", replace(loaded.network._config, marks_voice=False))


@fault("plain")
def a_mark_before_a_state(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    _with_voice(loaded, patch, lambda rows: torch.cat([torch.zeros_like(rows[:1]), rows]))


@fault("plain")
def a_state_s_last_position_is_lost(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    _with_voice(loaded, patch, lambda rows: rows[:-1])


@fault("old_state")
def everybody_has_the_first_voice(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    published = loaded.network._load_voice
    patch.setattr(loaded.network, "_load_voice", lambda name: published("alba"))


@fault("plain")
def keys_and_values_are_swapped(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    loaded.network._load_voice("alba")
    patch.setattr(loaded.network, "_keys", loaded.network._keys.flip(1))


@fault("plain")
def the_first_row_is_no_latent(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.network.bos_emb, "data", torch.zeros_like(loaded.network.bos_emb.data))


@fault("plain")
def halves_are_rotated(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    # Imported here: vLLM's imports cause warnings, which fail outside tests.
    from cantata_models.pocket_tts import talker

    def by_halves(x: torch.Tensor, rotary: torch.Tensor, head_dim: int) -> torch.Tensor:
        cos, sin = rotary.real, rotary.imag
        low, high = x.view(len(x), -1, head_dim).chunk(2, dim=-1)
        return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1).flatten(1)

    patch.setattr(talker, "apply_rotary", by_halves)


@fault("ends")
def it_ends_at_once(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    _with_inputs(loaded, patch, frames_after_eos=0)


@fault("ends_few")
def few_words_end_as_many_do(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    _with_inputs(loaded, patch, frames_after_eos=3)


@fault("ends_soon")
def the_first_frames_may_end(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_talker_module(loaded), "MIN_FRAMES", 0)


@fault("ends")
def the_usual_threshold(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    _with_inputs(loaded, patch, eos_threshold=-4.0)


@fault("recording")
def silence_is_kept(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(encoder, "end_in_pause", lambda samples, rate: samples)


@fault("recording_44")
def a_rate_is_ignored(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(encoder, "resampled", lambda samples, rate, wanted: samples)


@fault("still")
def no_capital_first(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    reader = loaded.builder._reader
    patch.setattr(reader, "_rules", replace(reader._rules, capitalised=False))


@fault("first")
def no_spaces_before_few_words(loaded: PocketStages, patch: pytest.MonkeyPatch) -> None:
    reader = loaded.builder._reader
    patch.setattr(reader, "_rules", replace(reader._rules, padded=False))


def _talker_module(loaded: PocketStages) -> Any:
    # Imported here: vLLM's imports cause warnings, which fail outside tests.
    from cantata_models.pocket_tts import talker

    return talker


def _with_draws(
    loaded: PocketStages, patch: pytest.MonkeyPatch, changed: Callable[[Any], dict[str, Any]]
) -> None:
    complete = loaded.network.complete_frames

    def completed(hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws) -> torch.Tensor:
        made: torch.Tensor = complete(hidden, code0, replace(draws, **changed(draws)))
        return made

    patch.setattr(loaded.network, "complete_frames", completed)


def _with_noise(
    loaded: PocketStages, patch: pytest.MonkeyPatch, draw: Callable[..., torch.Tensor]
) -> None:
    states = loaded.network.talker_step.states
    usual = states._layout.draw_noise
    other = replace(states._layout, draw_noise=lambda seed, count: draw(usual, seed, count))
    patch.setattr(states, "_layout", other)


def _with_voice(
    loaded: PocketStages,
    patch: pytest.MonkeyPatch,
    changed: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    begin = loaded.network._begin
    patch.setattr(loaded.network, "_begin", lambda inputs, rows: begin(inputs, changed(rows)))


def _with_inputs(loaded: PocketStages, patch: pytest.MonkeyPatch, **fields: Any) -> None:
    speak = loaded.builder._speak

    def changed(*given: Any) -> PocketTalkerInput:
        return replace(speak(*given), **fields)

    patch.setattr(loaded.builder, "_speak", changed)


@pytest.mark.thorough(every=6)
@pytest.mark.parametrize("name", FAULTS)
def test_a_scenario_detects(
    checkpoints: PocketCheckpoints, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, inject = FAULTS[name]
    wanted = scenario_named(scenario)
    loaded = checkpoints.get(wanted.checkpoint)
    # What was kept was made without the fault.
    monkeypatch.setattr(loaded.network.flow_net, "_times", {})
    forget_prefixes(loaded)
    inject(loaded, monkeypatch)
    assert differs(to_frames(loaded, wanted), wanted, TOLERANCE)
    monkeypatch.undo()
    forget_prefixes(loaded)


def test_without_a_fault_none_differs(checkpoints: PocketCheckpoints) -> None:
    for name in sorted({scenario for scenario, _ in FAULTS.values()}):
        wanted = scenario_named(name)
        loaded = checkpoints.get(wanted.checkpoint)
        assert not differs(to_frames(loaded, wanted), wanted, TOLERANCE), name


def forget_prefixes(loaded: PocketStages) -> None:
    """Make vLLM compute every position again."""
    core = loaded.talker._engine._core  # type: ignore[attr-defined]
    assert core.scheduler.reset_prefix_cache()
