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
from msgspec import structs
from torch import nn

from cantata_models.qwen3_tts import request_builder, request_options, talker_front
from cantata_models.qwen3_tts.prompt import PromptRows, Qwen3TtsPromptBuilder
from cantata_models.qwen3_tts.tests.talker_driver import (
    LoadedQwen3Talker,
    Qwen3TtsTalkers,
    differences,
    get_inputs,
    observe,
    scenario_named,
)
from faults import Faults, Inject

pytestmark = pytest.mark.vllm

fault = Faults[LoadedQwen3Talker]()


@fault("voice")
def another_rope_theta(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    cache = loaded.talker.layers[0].self_attn.rotary_emb.cos_sin_cache  # the layers share one
    half = cache.shape[1] // 2
    angles = torch.arange(len(cache))[:, None] / 20_000.0 ** (torch.arange(half) / half)
    patch.setattr(cache, "data", torch.cat((angles.cos(), angles.sin()), dim=1).to(cache))


@fault("voice")
def positions_off_by_half(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    forward = loaded.talker.forward

    def slower(**named: Any) -> torch.Tensor:
        hidden: torch.Tensor = forward(**{**named, "positions": named["positions"] // 2})
        return hidden

    patch.setattr(loaded.talker, "forward", slower)


@fault("voice")
def no_final_norm(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.talker.norm, "forward", lambda x, residual: (x + residual, residual))


@fault("voice")
def no_query_norm(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    for layer in loaded.talker.layers:
        patch.setattr(layer.self_attn.q_norm, "forward", lambda x: x)


@fault("voice")
def no_key_norm_in_the_predictor(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    for layer in loaded.talker.code_predictor.layers:
        patch.setitem(layer._modules, "k_norm", nn.Identity())


@fault("voice")
def swapped_gate_and_up(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    for layer in loaded.talker.code_predictor.layers:
        weight = layer.gate_up_proj.weight
        patch.setattr(weight, "data", torch.cat(weight.data.chunk(2)[::-1]))


@fault("instruct")
def predictor_projection_without_bias(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    bias = loaded.talker.code_predictor.small_to_mtp_projection.bias
    patch.setattr(bias, "data", torch.zeros_like(bias.data))


@fault("design")
def text_projection_without_its_activation(
    loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch
) -> None:
    projection = loaded.talker.text_projection
    patch.setattr(projection, "forward", lambda x: projection.linear_fc2(projection.linear_fc1(x)))


@fault("voice")
def heads_of_the_next_codebook(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    head = loaded.talker.code_predictor.lm_head
    patch.setattr(head, "data", head.data.roll(1, dims=0))


@fault("voice")
def two_codebooks_swapped_in_the_feedback(
    loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch
) -> None:
    embed = loaded.talker.code_predictor.embed
    order = [1, 0, *range(2, loaded.talker.num_codebooks - 1)]
    patch.setattr(loaded.talker.code_predictor, "embed", lambda codes: embed(codes[:, order]))


@fault("voice")
def code_0_is_not_fed_back(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    embed = loaded.talker.code_predictor.embed
    patch.setattr(loaded.talker, "embed_frames", lambda frames: embed(frames[:, 1:]).sum(1))


@fault("voice")
def swapped_pad_and_bos(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    config = loaded.talker._config
    codec = structs.replace(config.codec, pad=config.codec.bos, bos=config.codec.pad)
    patch.setattr(loaded.talker, "_prompts", Qwen3TtsPromptBuilder(codec, config.text))


@fault("voice")
def swapped_text_pad_and_eos(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    config = loaded.talker._config
    text = structs.replace(config.text, pad=config.text.eos, eos=config.text.pad)
    patch.setattr(loaded.talker, "_prompts", Qwen3TtsPromptBuilder(config.codec, text))


def _change_rows(
    loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch, change: Callable[[PromptRows], None]
) -> None:
    build = loaded.talker._prompts.build

    def changed(*given: Any, **named: Any) -> PromptRows:
        rows: PromptRows = build(*given, **named)
        change(rows)
        return rows

    patch.setattr(loaded.talker._prompts, "build", changed)


@fault("voice_streaming_text")
def trailing_text_off_by_one(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    def drop_first(rows: PromptRows) -> None:
        del rows.text[rows.prompt_len], rows.codes[rows.prompt_len]

    _change_rows(loaded, patch, drop_first)


@fault("voice_short_streaming_text")
def trailing_text_without_its_end(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    def drop_end(rows: PromptRows) -> None:
        del rows.text[-2], rows.codes[-2]

    _change_rows(loaded, patch, drop_end)


@fault("voice")
def no_speaker(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    speakers: dict[str, Any] = dict.fromkeys(loaded.builder._config.speakers)
    patch.setattr(loaded.builder, "_config", replace(loaded.builder._config, speakers=speakers))


def _change_recording(
    loaded: LoadedQwen3Talker,
    patch: pytest.MonkeyPatch,
    change: Callable[[Any], Any],
) -> None:
    begin = loaded.talker._begin

    def changed(inputs: Any, recording: Any) -> Any:
        return begin(inputs, change(recording))

    patch.setattr(loaded.talker, "_begin", changed)


@fault("speaker_vector")
def speaker_vector_of_silence(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    _change_recording(loaded, patch, lambda r: replace(r, speaker=torch.zeros_like(r.speaker)))


@fault("in_context_whole_text")
def last_reference_frame_missing(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    _change_recording(loaded, patch, lambda r: replace(r, frames=r.frames[:-1]))


@fault("in_context_text_trails")
def reference_text_missing(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    build = loaded.talker._prompts.build
    patch.setattr(
        loaded.talker._prompts,
        "build",
        lambda spoken, **named: build(replace(spoken, reference=()), **named),
    )


@fault("voice_language")
def language_not_told(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(request_builder, "language_code", lambda *given: None)


@fault("dialect_auto")
def dialect_not_told(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.builder, "_config", replace(loaded.builder._config, dialects={}))


@fault("dialect_voice_in_english")
def dialect_in_every_language(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    code = request_options.language_code
    patch.setattr(request_builder, "language_code", lambda name, *rest: code("auto", *rest))


@fault("instruct")
def instruction_dropped(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loaded.builder._tokenizer, "instruction", lambda text: ())


@fault("instruct_ignored")
def instruction_followed_by_a_small_model(
    loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch
) -> None:
    patch.setattr(loaded.builder, "_config", replace(loaded.builder._config, model_size="1b7"))


@fault("end_code_too_early")
def end_code_in_the_first_frames(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talker_front, "MIN_FRAMES", 0)


@fault("dialect_chinese")
def no_repetition_penalty(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    from cantata.stages.ar import talker_step

    patch.setattr(talker_step, "penalize_repetition", lambda logits, spoken, penalty: logits)


@fault("dialect_chinese")
def penalty_on_another_codebook(loaded: LoadedQwen3Talker, patch: pytest.MonkeyPatch) -> None:
    step = loaded.talker.talker_step

    spoken = step._gather_history
    patch.setattr(step, "_gather_history", lambda sampled, codebooks: spoken(sampled, 2)[:, :, 1:])


@fault.each
def test_each_fault_is_seen(
    talkers: Qwen3TtsTalkers,
    name: str,
    inject: Inject[LoadedQwen3Talker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = scenario_named(name)
    loaded = talkers.get(scenario.checkpoint)
    inject(loaded, monkeypatch)
    observed = observe(loaded, get_inputs(loaded.builder, scenario))
    assert differences(observed, scenario) != []
