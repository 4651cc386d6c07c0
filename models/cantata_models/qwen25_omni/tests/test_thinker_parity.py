"""The served thinker writes what the reference writes, and the rows for its talker are the
reference's: from any media, alone and in company, prefilled whole and in parts."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from cantata_layers.axial_rotation import AxialRotation, interleaved_axes
from cantata_layers.omni.inputs import VisionFeatures
from cantata_layers.omni.preprocess import Preprocessor
from cantata_layers.omni.tests.thinker_driver import Thought
from cantata_models.qwen25_omni.config import load_thinker_config
from cantata_models.qwen25_omni.encoder import Qwen25OmniMediaEncoder
from cantata_models.qwen25_omni.prompt import Qwen25OmniPromptBuilder
from cantata_models.qwen25_omni.tests.parity.conversations import (
    CONVERSATIONS,
    Conversation,
    conversation_named,
)
from cantata_models.qwen25_omni.tests.parity.write_goldens import (
    MIN_GAP,
    ROW_STRIDE,
    SCORE_STRIDE,
    checksum,
)
from cantata_models.qwen25_omni.tests.thinker_driver import (
    WHOLE,
    LoadedThinker,
    golden,
)
from faults import Faults, Inject

pytestmark = pytest.mark.vllm

ROWS_ATOL = 2e-4
"""Of the rows' root mean square."""
SCORES_RMS, SCORES_WORST = 2e-4, 2 * MIN_GAP
"""Scores have a root mean square of about 3. Random networks amplify rounding."""
TIGHT: dict[str, Any] = {
    "max_num_batched_tokens": 32,
    "kv_positions": 512,
    "prefix_caching": True,
}


@dataclass(frozen=True)
class Loaded:
    """All of one process. WHY at once: an engine that ends takes what others need along."""

    thinker: LoadedThinker
    tight: LoadedThinker
    """With little memory; prompts in parts, and their beginnings kept."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("thinkers")
    thinkers = Loaded(LoadedThinker(folder), LoadedThinker(folder, WHOLE.model_copy(update=TIGHT)))
    yield thinkers
    stages = [thinkers.thinker.stage, thinkers.tight.stage]
    assert all(set(stage.get_counts().values()) == {0} for stage in stages)
    # vLLM searches the whole heap twice per engine, which takes 2 s each in a test run.
    with patch.object(gc, "collect"):
        for stage in stages:
            stage.close()


@pytest.fixture
def thinker(loaded: Loaded) -> LoadedThinker:
    return loaded.thinker


@pytest.fixture(scope="module")
def alone(loaded: Loaded) -> dict[str, Thought]:
    return {c.name: loaded.thinker.think({c.name: c})[c.name] for c in CONVERSATIONS}


def check(thinker: LoadedThinker, conversation: Conversation) -> None:
    """Fail if the answer, its scores, or the rows for the talker are not the reference's."""
    scores: list[torch.Tensor] = []
    compute = thinker.thinker.compute_logits

    def watched(hidden: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = compute(hidden)
        scores.append(found[0].clone())
        return found

    thinker.thinker.compute_logits = watched
    try:
        thought = thinker.think({"r": conversation})["r"]
    finally:
        del thinker.thinker.compute_logits
    check_answer(thinker, conversation, thought)
    theirs = golden(conversation, "scores")
    ours = torch.stack(scores).numpy()[-len(theirs) :, ::SCORE_STRIDE]
    apart = ours.astype(np.float64) - theirs
    assert np.sqrt(np.square(apart).mean()) <= SCORES_RMS
    assert np.abs(apart).max() <= SCORES_WORST


def check_answer(thinker: LoadedThinker, conversation: Conversation, thought: Thought) -> None:
    """Tokens and rows. Of an answer that is not spoken no row leaves."""
    answer, end = golden(conversation, "answer").tolist(), thinker.thinker.end_code
    assert thought.tokens == [token for token in answer if token != end]
    assert thought.stopped == (answer[-1] == end)
    if conversation.speaker is None:
        assert not thought.rows
        return
    ours, theirs = thought.all_rows[:, ::ROW_STRIDE], golden(conversation, "rows")
    atol = ROWS_ATOL * np.sqrt(np.square(theirs).mean())
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


def test_the_weights_are_those_of_the_goldens(thinker: LoadedThinker) -> None:
    assert checksum(thinker.folder) == golden.arrays["checksum"]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name)
def test_the_answer_is_the_reference_s(thinker: LoadedThinker, conversation: Conversation) -> None:
    check(thinker, conversation)


def test_in_company_each_is_answered_as_alone(
    thinker: LoadedThinker, alone: dict[str, Thought]
) -> None:
    together = thinker.think({c.name: c for c in CONVERSATIONS}, every=2)
    for name, thought in alone.items():
        assert together[name].tokens == thought.tokens, name
        if thought.rows:
            np.testing.assert_array_equal(together[name].all_rows, thought.all_rows)


def test_with_little_memory_and_in_parts_each_is_answered_alike(loaded: Loaded) -> None:
    together = loaded.tight.think({c.name: c for c in CONVERSATIONS}, every=2)
    for conversation in CONVERSATIONS:
        check_answer(loaded.tight, conversation, together[conversation.name])


def test_a_known_beginning_sends_its_rows_again(loaded: Loaded) -> None:
    """Prefixes are kept, but the talker needs every row."""
    asked = conversation_named("picture")
    for name in ("first", "second"):
        check_answer(loaded.tight, asked, loaded.tight.think({name: asked})[name])


fault = Faults[LoadedThinker]()


@fault("picture")
def sections_of_positions_interleaved(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    config = load_thinker_config(made.folder)
    stack, axes = config.stack, interleaved_axes(config.mrope_section)
    other = AxialRotation(stack.head_dim, stack.rope_theta, axes)
    patch.setattr(made.thinker.rotation, "angles", other.angles)


@fault("picture", "sound", "video")
def media_leave_their_embeddings_too(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    # Imported late: vLLM warns when it is loaded.
    from cantata_models.qwen25_omni import thinker

    patch.setattr(
        thinker, "_marked", lambda media: torch.nn.functional.pad(media, (0, 1), value=0.0)
    )


@fault("text")
def rows_without_embeddings(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made.thinker, "export_rows", lambda hidden: hidden)


@fault("text")
def no_final_norm(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made.thinker.norm, "forward", lambda x, residual: (x + residual, residual))


@fault("text")
def queries_without_biases(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    for layer in made.thinker.layers:
        bias = layer.self_attn.qkv_proj.bias
        patch.setattr(bias, "data", torch.zeros_like(bias))


@fault("text")
def the_answer_is_not_fed_back(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    embed = made.thinker.embed_frames
    patch.setattr(made.thinker, "embed_frames", lambda frames: 0 * embed(frames))


@fault("picture")
def every_block_of_the_encoder_sees_all(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    encoder: Any = made.encoder
    network = encoder._vision
    patch.setattr(network, "fullatt_block_indexes", list(range(len(network.blocks))))


@fault("two_pictures", "two_sounds")
def media_in_another_order(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    run = Qwen25OmniMediaEncoder.run

    def swapped(self: Qwen25OmniMediaEncoder, batch: Any) -> Any:
        return run(self, [replace(inputs, media=inputs.media[::-1]) for inputs in batch])

    patch.setattr(Qwen25OmniMediaEncoder, "run", swapped)


@fault("sound")
def no_silence_beside_a_sound(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    preprocessor: Any = made.builder._prompts._layout._preprocessor
    patch.setattr(preprocessor, "_sound", replace(preprocessor._sound, silence=0))


@fault("picture")
def lines_and_columns_exchanged(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    seen = Preprocessor._prepare_vision

    def turned(self: Preprocessor, media: Any) -> VisionFeatures:
        made = seen(self, media)
        grid = replace(made.grid, height=made.grid.width, width=made.grid.height)
        return replace(made, grid=grid)

    patch.setattr(Preprocessor, "_prepare_vision", turned)


@fault("text")
def no_system_prompt(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Qwen25OmniPromptBuilder, "build", lambda self, messages: self._layout.build(messages)
    )


@fault("text_only_video")
def positions_at_fractions(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    layout: Any = made.builder._prompts._layout
    patch.setattr(layout, "_time", replace(layout._time, whole=False))


@fault("film")
def each_row_of_a_film_by_its_time(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    layout: Any = made.builder._prompts._layout
    patch.setattr(layout, "_time", replace(layout._time, film_block=None))


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    ("name", "inject"), fault.cases, ids=lambda part: getattr(part, "__name__", part)
)
def test_a_fault_is_seen(
    name: str,
    inject: Inject[LoadedThinker],
    thinker: LoadedThinker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inject(thinker, monkeypatch)
    with pytest.raises(AssertionError):
        check(thinker, conversation_named(name))
