"""The statement is effective: a scenario detects each fault in a list.

A fault is injected into the live talker or into the request's path to it. The scenario registered
for the fault must then differ from the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from cantata_models.fish_speech import prompt
from cantata_models.fish_speech.networks import pairs_as_halves
from cantata_models.fish_speech.tests.parity.scenarios import scenario_named
from cantata_models.fish_speech.tests.talker_driver import (
    FishTalkers,
    LoadedFishTalker,
    build_request,
    differences,
    observe,
)
from faults import Faults, Inject

pytestmark = pytest.mark.vllm

fault = Faults[LoadedFishTalker]()


def _rotary(loaded: LoadedFishTalker) -> Any:
    return loaded.talker.layers[0].self_attn.rotary_emb  # the layers share one


@fault("plain")
def rotation_by_halves(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_rotary(loaded), "is_neox_style", True)


@fault("plain")
def slow_table_not_rounded(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    rotary = _rotary(loaded)
    patch.setattr(rotary.cos_sin_cache, "data", rotary._compute_cos_sin_cache())


@fault("plain")
def fast_table_not_rounded(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    fast = loaded.talker.fast
    width = fast.cos.shape[1] // 2
    angles = torch.outer(torch.arange(len(fast.cos)), 10_000.0 ** -(torch.arange(width) / width))
    for name, table in (("cos", angles.cos()), ("sin", angles.sin())):
        patch.setattr(getattr(fast, name), "data", torch.cat((table, table), dim=1))


@fault("plain")
def fast_queries_left_in_pairs(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    weight = loaded.talker.fast.layers[0].qkv_proj.weight
    again = torch.cat((pairs_as_halves(weight.data[:128], 32), weight.data[128:]))
    patch.setattr(weight, "data", again)


@fault("plain")
def frames_not_scaled(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.talker, "_config", replace(loaded.talker._config, scaled_frames=False))


@fault("s1_plain")
def other_tokens_are_scaled_too(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    embed, end = loaded.talker.embed_frames, loaded.talker.end_code

    def scaled(frames: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = embed(frames)
        return torch.where(frames[:, :1] > end, rows / 11**0.5, rows)

    patch.setattr(loaded.talker, "embed_frames", scaled)


@fault("plain")
def two_codebooks_swapped_in_the_feedback(
    loaded: LoadedFishTalker, patch: pytest.MonkeyPatch
) -> None:
    embed, order = loaded.talker.embed_frames, [0, 2, 1, *range(3, 10)]
    patch.setattr(loaded.talker, "embed_frames", lambda frames: embed(frames[:, order]))


@fault("plain")
def code_0_s_codebook_not_fed_back(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    embeddings = loaded.talker.codebook_embeddings
    weight = embeddings.weight.data.clone()
    weight[:64] = 0
    patch.setattr(embeddings.weight, "data", weight)


@fault("plain")
def codes_limited_before_they_are_fed_back(
    loaded: LoadedFishTalker, patch: pytest.MonkeyPatch
) -> None:
    embed = loaded.talker.embed_frames

    def limited(frames: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = embed(torch.cat((frames[:, :1], frames[:, 1:].clamp(max=31)), dim=1))
        return rows

    patch.setattr(loaded.talker, "embed_frames", limited)


@fault("plain")
def fast_stack_before_the_norm(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.talker, "_to_fast_input", lambda hidden: hidden)


@fault("s1_plain")
def s1_s_fast_stack_behind_the_norm(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    norm = loaded.talker.norm
    patch.setattr(loaded.talker, "_to_fast_input", lambda hidden: norm(hidden))


@fault("s1_plain")
def s1_chooses_among_all_residual_codes(
    loaded: LoadedFishTalker, patch: pytest.MonkeyPatch
) -> None:
    patch.setattr(loaded.talker.fast, "_max_codes", 1280)


@fault("projected")
def projection_without_its_bias(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    bias = loaded.talker.fast.project_in.bias
    patch.setattr(bias, "data", torch.zeros_like(bias.data))


@fault("plain")
def swapped_gate_and_up(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    for layer in loaded.talker.fast.layers:
        weight = layer.gate_up_proj.weight
        patch.setattr(weight, "data", torch.cat(weight.data.chunk(2)[::-1]))


@fault("plain")
def no_key_norm(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    for layer in loaded.talker.layers:
        patch.setattr(layer.self_attn.k_norm, "forward", lambda x: x)


@fault("plain")
def positions_off_by_half(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    forward = loaded.talker.forward

    def slower(**named: Any) -> torch.Tensor:
        hidden: torch.Tensor = forward(**{**named, "positions": named["positions"] // 2})
        return hidden

    patch.setattr(loaded.talker, "forward", slower)


@fault("ends")
def another_end(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.talker.head.weight, "data", loaded.talker.head.weight.data.roll(1, 0))


def _prompt(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Change attributes of the builder's prompts."""
    for name, value in changed.items():
        patch.setattr(loaded.builder._prompts, name, value)


@fault("plain")
def no_voice_token(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    _prompt(loaded, patch, _reply=loaded.builder._prompts._reply[:-1])


@fault("s1_plain")
def s1_without_its_first_token(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    _prompt(loaded, patch, _begin=())


@fault("recording")
def another_task(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt, "REFERENCE_TASK", prompt.TASK)


@fault("recording")
def transcript_without_a_speaker(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt, "with_speaker", lambda transcript, number: transcript)


@fault("recording_tagged")
def transcript_with_two_speakers(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt, "with_speaker", lambda transcript, number: f"<|speaker:0|>{transcript}")


@fault("recording")
def recording_behind_its_place(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    begin = loaded.talker._begin

    def later(inputs: Any, recording: Any) -> Any:
        (place,) = inputs.recordings
        return begin(replace(inputs, recordings=(replace(place, at=place.at + 1),)), recording)

    patch.setattr(loaded.talker, "_begin", later)


@fault("s1_recording")
def last_reference_frame_missing(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    begin = loaded.talker._begin

    def shorter(inputs: Any, frames: torch.Tensor) -> Any:
        (place,) = inputs.recordings
        fewer = replace(place, frames=place.frames - 1)
        return begin(replace(inputs, recordings=(fewer,)), frames[:-1])

    patch.setattr(loaded.talker, "_begin", shorter)


@fault("two_voices")
def both_recordings_of_one_speaker(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt, "with_speaker", lambda transcript, number: f"<|speaker:0|>{transcript}")


@fault("two_voices")
def recordings_swapped(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    encode = loaded.encoder.add

    def swapped(name: str, inputs: Any, *, batch: bool) -> None:
        encode(name, replace(inputs, recordings=inputs.recordings[::-1]), batch=batch)

    patch.setattr(loaded.encoder, "add", swapped)


@fault("s1_recordings")
def both_recordings_in_one_place(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    begin = loaded.talker._begin

    def joined(inputs: Any, recording: Any) -> Any:
        first, second = inputs.recordings
        return begin(replace(inputs, recordings=(first, replace(second, at=first.at))), recording)

    patch.setattr(loaded.talker, "_begin", joined)


def _spoken(
    loaded: LoadedFishTalker, patch: pytest.MonkeyPatch, change: Callable[[Any], Any]
) -> None:
    """Change what stands in a prompt of earlier turns."""
    begin = loaded.talker._begin

    def changed(inputs: Any, recording: Any) -> Any:
        spoken = tuple(change(inputs.spoken))
        return begin(replace(inputs, spoken=spoken), recording)

    patch.setattr(loaded.talker, "_begin", changed)


@fault("second_group")
def what_was_said_is_forgotten(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    _spoken(loaded, patch, lambda spoken: ())


@fault("second_group")
def what_was_said_without_its_end(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    _spoken(loaded, patch, lambda spoken: [replace(one, end=one.end[1:]) for one in spoken])


@fault("second_group")
def the_text_without_its_sound(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    _spoken(loaded, patch, lambda spoken: [replace(one, codes=one.codes[:0]) for one in spoken])


@fault("last_group")
def earlier_groups_the_wrong_way_round(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    _spoken(loaded, patch, lambda spoken: spoken[::-1])


@fault("last_group")
def earlier_groups_behind_the_text(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    begin = loaded.talker._begin

    def later(inputs: Any, recording: Any) -> Any:
        return begin(replace(inputs, spoken_at=len(inputs.tokens)), recording)

    patch.setattr(loaded.talker, "_begin", later)


@fault("one_frame")
def one_frame_more(loaded: LoadedFishTalker, patch: pytest.MonkeyPatch) -> None:
    begin = loaded.talker._begin

    def longer(inputs: Any, recording: Any) -> Any:
        return begin(replace(inputs, max_frames=inputs.max_frames + 1), recording)

    patch.setattr(loaded.talker, "_begin", longer)


@fault.each
def test_each_fault_is_seen(
    talkers: FishTalkers,
    name: str,
    inject: Inject[LoadedFishTalker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = scenario_named(name)
    loaded = talkers.of(scenario)
    inject(loaded, monkeypatch)
    observed = observe(loaded, build_request(scenario))
    assert differences(loaded, observed, scenario) != []
