"""The goldens are effective: a scenario detects each fault in a list.

A fault is injected into the live talker or into the rows that it is given. The scenarios registered
for the fault must then differ from their goldens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from msgspec import structs
from numpy.typing import NDArray

from cantata.contract.model.embedding_source import TalkerPrompt
from cantata.stages.ar.request_state import RequestStates
from cantata_layers.axial_rotation import AxialRotation, consecutive_axes
from cantata_models.qwen3_omni.prompt import HeardPrompt, Qwen3OmniPromptBuilder
from cantata_models.qwen3_omni.talker_rows import Qwen3OmniAnswerRows, RowTables
from cantata_models.qwen3_omni.tests.parity.scenarios import scenario_named
from cantata_models.qwen3_omni.tests.talker_driver import Checkpoint, Qwen3OmniCheckpoints, check
from faults import Faults, Inject
from model_engines import checkpoints_fixture

pytestmark = pytest.mark.vllm
checkpoints = checkpoints_fixture(Qwen3OmniCheckpoints, "module")

fault = Faults[Checkpoint]()


@fault("text")
def no_final_norm(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made.talker.norm, "forward", lambda x, residual: (x + residual, residual))


@fault("text")
def the_shared_expert_is_left_out(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    for layer in made.talker.layers:
        patch.setattr(layer.mlp.shared_expert, "forward", torch.zeros_like)


@fault("text")
def the_shared_expert_has_no_gate(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    for layer in made.talker.layers:
        gate = layer.mlp.shared_expert.expert_gate
        patch.setattr(gate, "forward", lambda x: (x.new_full((len(x), 1), 1e9), None))


@fault("text")
def the_experts_are_left_out(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    for layer in made.talker.layers:
        shared = layer.mlp.shared_expert
        patch.setattr(layer.mlp, "forward", lambda x, shared=shared: shared(x))


@fault("picture", "video")
def sections_of_positions_in_blocks(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    stack = made.speech.talker.backbone
    axes = consecutive_axes(stack.mrope_section)
    other = AxialRotation(stack.layers.head_dim, stack.layers.rope_theta, axes)
    patch.setattr(made.talker.rotation, "angles", other.angles)


def _change_positions(
    patch: pytest.MonkeyPatch, change: Callable[[HeardPrompt], NDArray[np.float32]]
) -> None:
    heard = Qwen3OmniPromptBuilder.select_user_turns

    def changed(self: Qwen3OmniPromptBuilder, prompt: Any) -> HeardPrompt:
        made = heard(self, prompt)
        return replace(made, positions=change(made))

    patch.setattr(Qwen3OmniPromptBuilder, "select_user_turns", changed)


@fault("two_pictures", "mixed")
def pictures_have_no_lines(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    def flat(heard: HeardPrompt) -> NDArray[np.float32]:
        count = heard.positions.shape[1]
        return np.array(np.broadcast_to(np.arange(count, dtype=np.float32), (3, count)))

    _change_positions(patch, flat)


@fault("video", "mixed")
def speech_does_not_go_on_behind_pictures(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    place = RequestStates._fill_positions

    def counted(self: RequestStates, slot: int, prompt: TalkerPrompt) -> None:
        place(self, slot, prompt)
        behind = torch.arange(self.positions.shape[1])[prompt.prompt_len :]
        self.positions[slot, prompt.prompt_len :] = behind[:, None].float()

    patch.setattr(RequestStates, "_fill_positions", counted)


@fault("text")
def heads_of_the_next_codebook(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    head = made.talker.code_predictor.lm_head
    patch.setattr(head, "data", head.data.roll(1, dims=0))


@fault("text")
def code_0_is_not_fed_back(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    embed = made.talker.code_predictor.embed
    patch.setattr(made.talker, "embed_frames", lambda frames: embed(frames[:, 1:]).sum(1))


@fault("cut", "two_turns")
def no_repetition_penalty(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    from cantata.stages.ar import talker_step

    patch.setattr(talker_step, "penalize_repetition", lambda logits, spoken, penalty: logits)


@fault("sound", "picture")
def media_are_projected_as_text(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    talker = made.talker
    patch.setattr(talker.hidden_projection, "forward", talker.text_projection.forward)


@fault("two_turns")
def rows_of_media_in_another_order(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    prompt = RowTables.prompt
    patch.setattr(
        RowTables, "prompt", lambda self, inputs, media, first: prompt(
            self, inputs, media.flip(0), first
        ),
    )  # fmt: skip


@fault("two_turns")
def only_the_last_turn_is_heard(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    spoken = made.spoken

    def shorter(scenario: Any) -> Any:
        whole = spoken(scenario)
        start = int(np.flatnonzero(whole.inputs.user == made.config.text.im_start)[-1])
        is_late = whole.inputs.media >= start
        inputs = replace(
            whole.inputs,
            user=whole.inputs.user[start:],
            media=whole.inputs.media[is_late] - start,
            sources=whole.inputs.sources[is_late],
            positions=whole.inputs.positions[:, start:],
        )
        return replace(whole, inputs=inputs)

    patch.setattr(made, "spoken", shorter)


def _change_ids(made: Checkpoint, patch: pytest.MonkeyPatch, **ids: int) -> None:
    patch.setattr(made.talker, "_text_ids", structs.replace(made.config.text, **ids))


@fault("text")
def the_end_is_filling(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    _change_ids(made, patch, tts_eos=made.config.text.tts_pad)


@fault("text")
def the_end_is_spoken_as_a_token(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    _change_ids(made, patch, im_end=-1)


@fault("text")
def the_beginning_is_filling(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    _change_ids(made, patch, tts_bos=made.config.text.tts_pad)


@fault("system")
def another_voice(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    spoken = made.spoken

    def other(scenario: Any) -> Any:
        right = spoken(scenario)
        return replace(right, inputs=replace(right.inputs, speaker=right.inputs.speaker + 1))

    patch.setattr(made, "spoken", other)


@fault("text")
def thinking_begins_and_ends_the_other_way_round(
    made: Checkpoint, patch: pytest.MonkeyPatch
) -> None:
    codec = made.speech.talker.codec
    swapped = replace(codec, think_bos=codec.think_eos, think_eos=codec.think_bos)
    patch.setattr(made.talker, "_talker", replace(made.speech.talker, codec=swapped))


@fault("cut", "sound")
def tokens_are_heard_one_frame_late(made: Checkpoint, patch: pytest.MonkeyPatch) -> None:
    take = Qwen3OmniAnswerRows._take_tokens

    def late(self: Qwen3OmniAnswerRows, tokens: Any, *, final: bool) -> None:
        take(self, tokens, final=final)
        self._answer.insert(1, made.config.text.tts_pad)

    patch.setattr(Qwen3OmniAnswerRows, "_take_tokens", late)


@fault.each
def test_a_fault_is_seen(
    name: str,
    inject: Inject[Checkpoint],
    checkpoints: Qwen3OmniCheckpoints,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = scenario_named(name)
    checkpoint = checkpoints.get(scenario.seed)
    inject(checkpoint, monkeypatch)
    with pytest.raises(AssertionError):
        check(checkpoint, scenario)
