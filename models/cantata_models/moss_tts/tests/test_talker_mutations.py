"""The goldens are effective: a scenario detects each fault in a list.

A fault is injected into the live networks, the prompts or the sampling. The scenario registered for
it must then differ from its golden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from cantata_models.moss_tts import frame_network, splitting
from cantata_models.moss_tts import prompt as prompt_module
from cantata_models.moss_tts.config import Activation
from cantata_models.moss_tts.frame_network import FrameNetwork
from cantata_models.moss_tts.prompt import Fields, Gap, MossPrompt
from cantata_models.moss_tts.tests import talker_driver
from cantata_models.moss_tts.tests.parity.scenarios import scenario_named
from cantata_models.moss_tts.tests.sampling import penalized
from cantata_models.moss_tts.tests.talker_driver import LoadedMossTalker, MossTalkers, check
from faults import Faults, Inject

pytestmark = pytest.mark.vllm

fault = Faults[LoadedMossTalker]()


# The local transformer and the frames.


@fault("plain", "nano_plain")
def positions_turn_halves_in_a_frame(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    def by_halves(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        low, high = x.chunk(2, dim=-1)
        cos, sin = cos[..., ::2], sin[..., ::2]
        return torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)

    patch.setattr(frame_network, "apply_rotary", by_halves)


@fault("plain", "nano_plain")
def another_theta_in_a_frame(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    transformer = talker.network.frames.local_transformer
    head_dim = transformer.cos.shape[1]
    cos, sin = frame_network.rotary_angles(len(transformer.cos), head_dim, 5000.0)
    patch.setattr(transformer.cos, "data", cos)
    patch.setattr(transformer.sin, "data", sin)


@fault("plain", "nano_plain")
def no_positions_in_a_frame(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(frame_network, "apply_rotary", lambda x, cos, sin: x)


@fault("plain", "nano_plain")
def no_last_norm_in_a_frame(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talker.network.frames.local_transformer.ln_f, "forward", lambda x: x)


@fault("plain", "nano_plain")
def another_nonlinearity_in_a_frame(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    for block in talker.network.frames.local_transformer.h:
        patch.setattr(block.mlp, "_activate", functional.gelu)


@fault("plain", "nano_plain")
def a_code_sees_only_itself(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    attend = functional.scaled_dot_product_attention  # of all modules

    def own(query: Any, keys: Any, values: Any, *mask: Any, **named: Any) -> torch.Tensor:
        if not mask and query.shape[2] != keys.shape[2]:  # the backbones' has a mask
            keys, values = keys[:, :, -1:], values[:, :, -1:]
        return attend(query, keys, values, *mask, **named)

    patch.setattr(functional, "scaled_dot_product_attention", own)


@fault("plain", "nano_plain")
def heads_of_the_next_codebook(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    scores, books = FrameNetwork._scores, talker.config.num_codebooks
    patch.setattr(
        FrameNetwork, "_scores", lambda self, x, book: scores(self, x, (book + 1) % books)
    )


@fault("plain", "nano_plain")
def stop_and_go_on_swapped(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    weight = talker.network.frames.local_text_lm_head.weight
    patch.setattr(weight, "data", weight.data.flip(0))


@fault("nano_plain")
def the_choice_to_go_on_is_no_position(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talker.network.frames, "_feeds_choice", False)


@fault("nano_plain")
def the_choice_to_stop_is_the_position(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    from cantata_models.moss_tts import frame_network

    patch.setattr(frame_network, "GO_ON", 1)


@fault("plain", "nano_plain")
def last_codebook_not_fed_back(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    embed, tables = talker.network.frames.embed, talker.network.frames.audio_embeddings
    patch.setattr(
        talker.network.frames, "embed", lambda frames: embed(frames) - tables[-1][frames[:, -1]]
    )


# The backbones.


def _backbone(talker: LoadedMossTalker) -> Any:
    return talker.network.transformer


@fault("nano_plain")
def positions_turn_halves(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    for layer in _backbone(talker).h:
        patch.setattr(layer.attn.rotary_emb, "is_neox_style", True)


@fault("plain")
def positions_turn_pairs(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    for layer in _backbone(talker).layers:
        patch.setattr(layer.self_attn.rotary_emb, "is_neox_style", False)


@fault("plain", "nano_plain")
def positions_off_by_half(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    forward = _backbone(talker).forward
    patch.setattr(
        _backbone(talker), "forward", lambda positions, rows: forward(positions // 2, rows)
    )


@fault("nano_plain")
def another_nonlinearity(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    for layer in _backbone(talker).h:
        patch.setitem(layer.mlp._modules, "act", nn.GELU())


@fault("nano_plain")
def no_last_norm_in_nano(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_backbone(talker).ln_f, "forward", lambda x: x)


@fault("plain")
def no_last_norm_in_local(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_backbone(talker).norm, "forward", lambda x, residual: (x + residual, residual))


@fault("nano_plain")
def a_norm_without_its_bias(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    bias = _backbone(talker).h[1].ln_2.bias
    patch.setattr(bias, "data", torch.zeros_like(bias.data))


@fault("clone")
def pad_codes_embedded(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    embed = talker.network.embed_prompt

    def with_pad(rows: torch.Tensor) -> torch.Tensor:
        first = talker.network.frames.audio_embeddings[0][0]
        return embed(rows) + first * (rows[:, 1:2] == talker.config.pad_code)

    patch.setattr(talker.network, "embed_prompt", with_pad)


# The prompts.


def _change_prompts(
    talker: LoadedMossTalker, patch: pytest.MonkeyPatch, change: Callable[[MossPrompt], MossPrompt]
) -> None:
    build = talker.prompts.build
    patch.setattr(talker.prompts, "build", lambda *given, **named: change(build(*given, **named)))


@fault("clone", "continuation", "nano_clone", "nano_continuation")
def swapped_slots(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    tokens = talker.config.tokens
    other = {
        tokens.user_slot: tokens.assistant_slot,
        tokens.assistant_slot: tokens.user_slot,
    }

    def swap(prompt: MossPrompt) -> MossPrompt:
        return replace(prompt, gaps=tuple(Gap(g.position, other[g.slot]) for g in prompt.gaps))

    _change_prompts(talker, patch, swap)


@fault("clone", "clone_of_two", "nano_clone")
def frames_in_front_of_their_start(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    def earlier(prompt: MossPrompt) -> MossPrompt:
        return replace(prompt, gaps=tuple(Gap(g.position - 1, g.slot) for g in prompt.gaps))

    _change_prompts(talker, patch, earlier)


@fault("plain", "nano_plain")
def the_sound_does_not_start(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    _change_prompts(talker, patch, lambda prompt: replace(prompt, ids=prompt.ids[:-1]))


@fault("plain", "continuation", "nano_continuation")
def no_word_for_absent_references(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talker.prompts, "_nothing", ())


@fault("instruction")
def fields_not_stripped(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    rendered = Fields.rendered

    def raw(fields: Fields) -> str:
        assert fields.instruction is not None
        return rendered(fields).replace(fields.instruction.strip(), fields.instruction)

    patch.setattr(Fields, "rendered", raw)


@fault("all_fields", "duration", "language", "plain_chinese")
def fields_left_out(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    build = talker.prompts.build
    patch.setattr(
        talker.prompts,
        "build",
        lambda *given, **named: build(*given, **{**named, "described": None}),
    )


@fault("continuation", "nano_continuation")
def words_run_together(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talker_driver, "joined", lambda transcript, text: transcript + text)


@fault("continuation_chinese", "nano_continuation_chinese")
def a_space_between_characters(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt_module, "_is_unspaced", lambda character: False)


@fault("clone_of_two")
def recordings_swapped(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    rows = MossPrompt.rows
    patch.setattr(
        MossPrompt, "rows", lambda prompt, recordings, *rest: rows(prompt, recordings[::-1], *rest)
    )


@fault("nano_clone_in_parts")
def parts_one_token_too_long(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    split = splitting.split_text
    patch.setattr(
        talker_driver, "split_text", lambda text, count, most: split(text, count, most + 20)
    )


@fault("nano_clone")
def a_single_part_put_right(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        talker_driver,
        "split_text",
        lambda text, count, most: (splitting.MossTextPart(splitting._prepare_text(text), 0.0),),
    )


# The sampling.


@fault("penalty", "nano_plain")
def no_penalty(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talker_driver, "penalized", lambda scores, history, penalty: scores)


@fault("penalty", "nano_plain_english")
def a_penalty_for_each_repetition(talker: LoadedMossTalker, patch: pytest.MonkeyPatch) -> None:
    once = penalized

    def often(scores: Any, history: Any, penalty: float) -> Any:
        for code in history:
            scores = once(scores, np.array([code]), penalty)
        return scores

    patch.setattr(talker_driver, "penalized", often)


@fault.each
def test_each_fault_is_seen(
    talkers: MossTalkers,
    name: str,
    inject: Inject[LoadedMossTalker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talker = talkers.get(scenario_named(name))
    inject(talker, monkeypatch)
    with pytest.raises(AssertionError, match=r"Not equal|Arrays are not|too few parts"):
        check(talker, scenario_named(name))


def test_activations_are_as_published() -> None:
    """Were both models' alike, their mix-up would not be seen."""
    assert set(frame_network.ACTIVATIONS) == set(Activation)
