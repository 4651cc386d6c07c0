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
from cantata_models.voxcpm2 import encoder, patch_solver, prompt_layout, request_builder
from cantata_models.voxcpm2.tests.parity.scenarios import TINY_3, scenario_named
from cantata_models.voxcpm2.tests.stage_driver import (
    VoxCpm2Checkpoints,
    VoxCpm2Stages,
    differs,
    to_latents,
)
from faults import Faults, Inject

pytestmark = pytest.mark.vllm

LATENT_TOLERANCE = 1e-4
fault = Faults[VoxCpm2Stages]()


@fault("cut")
def the_first_step_moves(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(patch_solver, "max", lambda *given: 0, raising=False)


@fault("many_steps")
def one_still_step_of_fifty(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(patch_solver, "STILL_SHARE", 0.0)


@fault("cut")
def guidance_without_the_fit(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        patch_solver, "guided", lambda with_it, free, much: free + much * (with_it - free)
    )


@fault("cut")
def steps_of_equal_length(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    def equal(steps: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.linspace(1, 0, steps + 1)[:-1], torch.full((steps,), 1 / steps)

    patch.setattr(patch_solver, "schedule", equal)


@fault("few_steps")
def everybody_s_guidance(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    _with_draws(loaded, patch, lambda draws: {"options": torch.full_like(draws.options, 2.0)})


@fault("few_steps")
def everybody_s_steps(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    _with_draws(loaded, patch, lambda draws: {"steps": (10,) * len(draws.steps)})


@fault("plain")
def the_patch_before_is_forgotten(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    _with_draws(loaded, patch, lambda draws: {"previous": torch.zeros_like(draws.previous)})


@fault("continuation")
def the_recording_s_last_patch_is_forgotten(
    loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch
) -> None:
    states = loaded.network.talker_step.states
    add = states.add

    def forgetful(request_id: str, given: Any, sampling: Any) -> None:
        add(request_id, given, sampling)
        states.before_first.zero_()

    patch.setattr(states, "add", forgetful)


@fault("cut")
def noise_of_the_next_seed(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    layout = loaded.network.talker_step.states._layout
    draw = layout.draw_noise
    other = replace(layout, draw_noise=lambda seed, count: draw(seed + 1, count))
    patch.setattr(loaded.network.talker_step.states, "_layout", other)


@fault("cut")
def noise_by_patches_first(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    size, latents = loaded.network._config.frame_size, loaded.network._config.patch_size

    def turned(draws: FrameDraws) -> dict[str, Any]:
        assert draws.noise is not None
        noise = draws.noise.view(-1, latents, size // latents).transpose(1, 2)
        return {"noise": noise.flatten(1)}

    _with_draws(loaded, patch, turned)


@fault("plain")
def no_quantization(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    quantizer = loaded.network.fsq_layer
    smooth = lambda x: quantizer.out_proj(torch.tanh(quantizer.in_proj(x)))  # noqa: E731
    patch.setattr(quantizer, "forward", smooth)


@fault("cut")
def text_is_quantized_too(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    _with_patch_flags(loaded, patch, 1.0)


@fault("clone")
def a_recording_counts_as_text(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    _with_patch_flags(loaded, patch, 0.0)


@fault("cut")
def the_residual_model_has_positions(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    base, residual = loaded.network.base_lm, loaded.network.residual_lm
    patch.setattr(residual, "_has_positions", True)
    for name in ("cos", "sin"):
        patch.setitem(residual._buffers, name, getattr(base, name))


@fault("cut")
def frequencies_are_not_stretched(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    base = loaded.network.base_lm
    half = base.cos.shape[1]
    angles = torch.arange(len(base.cos))[:, None] / 10_000.0 ** (torch.arange(half) / half)
    patch.setitem(base._buffers, "cos", angles.cos())
    patch.setitem(base._buffers, "sin", angles.sin())


@fault("cut")
def the_language_models_tokens_are_swapped(
    loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch
) -> None:
    solver = loaded.network.feat_decoder
    forward = solver.forward

    def swapped(noise: Any, given: patch_solver.Conditions, steps: Any) -> torch.Tensor:
        made: torch.Tensor = forward(noise, replace(given, hidden=given.hidden.flip(1)), steps)
        return made

    patch.setattr(solver, "forward", swapped)


@fault("cut")
def no_length_of_a_step(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.network.feat_decoder.estimator.delta_time_mlp, "forward", lambda x: 0.0)


@fault("clone")
def it_may_stop_at_once(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    # Imported here: vLLM's imports cause warnings, which fail outside tests.
    from cantata_models.voxcpm2 import talker

    patch.setattr(talker, "MIN_FRAMES", 0)


@fault("clone")
def the_last_patch_is_dropped(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.talker._chunking, "_speaks_end", False)  # type: ignore[attr-defined]


@fault("cut")
def no_token_where_sound_begins(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt_layout, "AUDIO_START", 102)


@fault("combined")
def no_token_where_a_recording_ends(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt_layout, "REFERENCE_END", 103)


@fault("chinese")
def chinese_words_are_kept(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.builder._tokenizer, "_words", set())


@fault("chinese")
def white_space_is_kept(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(request_builder, "in_one_line", lambda text: text)


@fault("cut")
def a_token_for_the_beginning(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    encode = loaded.builder._tokenizer.encode
    patch.setattr(loaded.builder._tokenizer, "encode", lambda text: (1, *encode(text)))


@fault("clone")
def silence_in_front_of_a_voice(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    _with_padding_reversed(patch)


@fault("continuation")
def silence_behind_what_is_continued(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch) -> None:
    _with_padding_reversed(patch)


def _with_padding_reversed(patch: pytest.MonkeyPatch) -> None:
    fill = encoder.filled_up
    patch.setattr(
        encoder,
        "filled_up",
        lambda sound, unit, *, in_front: fill(sound, unit, in_front=not in_front),
    )


def _with_draws(
    loaded: VoxCpm2Stages,
    patch: pytest.MonkeyPatch,
    changed: Callable[[Any], dict[str, Any]],
) -> None:
    complete = loaded.network.complete_frames

    def completed(hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws) -> torch.Tensor:
        made: torch.Tensor = complete(hidden, code0, replace(draws, **changed(draws)))
        return made

    patch.setattr(loaded.network, "complete_frames", completed)


def _with_patch_flags(loaded: VoxCpm2Stages, patch: pytest.MonkeyPatch, flag: float) -> None:
    embed = loaded.network._embed

    def flagged(layout: Any) -> torch.Tensor:
        rows: torch.Tensor = embed(layout)
        rows[:-1, -1] = flag
        return rows

    patch.setattr(loaded.network, "_embed", flagged)


@fault.each
def test_a_scenario_detects(
    checkpoints: VoxCpm2Checkpoints,
    name: str,
    inject: Inject[VoxCpm2Stages],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded, wanted = checkpoints.get(TINY_3), scenario_named(name)
    # The solver's plans were made without the fault.
    monkeypatch.setattr(loaded.network.feat_decoder, "_plans", {})
    inject(loaded, monkeypatch)
    assert differs(to_latents(loaded, wanted), wanted, LATENT_TOLERANCE)


def test_without_a_fault_none_differs(checkpoints: VoxCpm2Checkpoints) -> None:
    loaded = checkpoints.get(TINY_3)
    for name in fault.scenarios:
        wanted = scenario_named(name)
        assert not differs(to_latents(loaded, wanted), wanted, LATENT_TOLERANCE), name
