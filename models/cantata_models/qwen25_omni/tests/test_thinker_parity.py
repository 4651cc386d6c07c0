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
from cantata_layers.omni.features import VisionFeatures
from cantata_layers.omni.preprocess import Preprocessor
from cantata_models.qwen25_omni.encoder_stage import MediaEncoder
from cantata_models.qwen25_omni.prompt import PromptBuilder
from cantata_models.qwen25_omni.tests.parity.conversations import (
    CONVERSATIONS,
    FIRST_SEED,
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
    Thought,
    golden,
    goldens,
)
from cantata_models.qwen25_omni.thinker_config import load_thinker_config
from faults import Faults, Inject

pytestmark = [
    pytest.mark.integration,
    # vLLM's imports and start-up cause torch deprecation warnings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

SEEDS = sorted({conversation.seed for conversation in CONVERSATIONS})
OF_FIRST = {c.name: c for c in CONVERSATIONS if c.seed == FIRST_SEED}
ROWS_ATOL = 2e-4
"""Of the rows' root mean square."""
SCORES_RMS, SCORES_WORST = 2e-4, 2 * MIN_GAP
"""Scores have a root mean square of about 3. Random networks amplify rounding."""
VARIANTS: dict[str, dict[str, Any]] = {
    "in_parts": {"max_num_batched_tokens": 32, "kv_positions": 512},
    "prefixes": {"prefix_caching": True},
}


@dataclass(frozen=True)
class Loaded:
    """All of one process. WHY at once: an engine that ends takes what others need along."""

    thinkers: dict[int, LoadedThinker]
    """By seed."""
    variants: dict[str, LoadedThinker]
    """Of the first seed, otherwise deployed."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("thinkers")
    thinkers = {seed: LoadedThinker(folder, seed) for seed in SEEDS}
    variants = {
        name: LoadedThinker(folder, FIRST_SEED, WHOLE.model_copy(update=settings))
        for name, settings in VARIANTS.items()
    }
    yield Loaded(thinkers, variants)
    stages = [thinker.stage for thinker in (*thinkers.values(), *variants.values())]
    assert all(set(stage.counts().values()) == {0} for stage in stages)
    # vLLM searches the whole heap twice per engine, which takes 2 s each in a test run.
    with patch.object(gc, "collect"):
        for stage in stages:
            stage.close()


@pytest.fixture
def thinkers(loaded: Loaded) -> dict[int, LoadedThinker]:
    return loaded.thinkers


@pytest.fixture(scope="module")
def alone(loaded: Loaded) -> dict[str, Thought]:
    first = loaded.thinkers[FIRST_SEED]
    return {name: first.think({name: asked})[name] for name, asked in OF_FIRST.items()}


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


def test_the_weights_are_those_of_the_goldens(loaded: Loaded) -> None:
    for seed, thinker in loaded.thinkers.items():
        assert checksum(thinker.folder) == goldens()[f"checksum {seed}"]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name)
def test_the_answer_is_the_reference_s(
    thinkers: dict[int, LoadedThinker], conversation: Conversation
) -> None:
    check(thinkers[conversation.seed], conversation)


@pytest.mark.parametrize("variant", [None, *VARIANTS])
def test_in_company_each_is_answered_alike(
    loaded: Loaded, alone: dict[str, Thought], variant: str | None
) -> None:
    first = loaded.thinkers[FIRST_SEED]
    thinker = first if variant is None else loaded.variants[variant]
    together = thinker.think(OF_FIRST, every=2)
    for name, conversation in OF_FIRST.items():
        check_answer(thinker, conversation, together[name])
        if variant is None and alone[name].rows:
            np.testing.assert_array_equal(together[name].all_rows, alone[name].all_rows)


def test_a_known_beginning_sends_its_rows_again(loaded: Loaded) -> None:
    """Prefixes are kept, but the talker needs every row."""
    thinker, asked = loaded.variants["prefixes"], OF_FIRST["picture"]
    first, second = (thinker.think({name: asked})[name] for name in ("a", "b"))
    assert second.tokens == first.tokens
    check_answer(thinker, asked, second)


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
    from cantata_models.qwen25_omni import thinker_stage

    patch.setattr(
        thinker_stage, "_marked", lambda media: torch.nn.functional.pad(media, (0, 1), value=0.0)
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
    network = made.encoder._vision
    patch.setattr(network, "fullatt_block_indexes", list(range(len(network.blocks))))


@fault("two_pictures", "two_sounds")
def media_in_another_order(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    run = MediaEncoder.run

    def swapped(self: MediaEncoder, batch: Any) -> Any:
        return run(self, [replace(inputs, media=inputs.media[::-1]) for inputs in batch])

    patch.setattr(MediaEncoder, "run", swapped)


@fault("two_sounds")
def no_silence_behind_a_sound(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    preprocessor: Any = made.builder._prompts._layout._preprocessor
    patch.setattr(preprocessor, "_sound", replace(preprocessor._sound, silence=0))


@fault("picture")
def lines_and_columns_exchanged(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    seen = Preprocessor._seen

    def turned(self: Preprocessor, media: Any) -> VisionFeatures:
        made = seen(self, media)
        grid = replace(made.grid, height=made.grid.width, width=made.grid.height)
        return replace(made, grid=grid)

    patch.setattr(Preprocessor, "_seen", turned)


@fault("text")
def no_system_prompt(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PromptBuilder, "build", lambda self, messages: self._layout.build(messages))


@fault("text_only_video")
def positions_at_fractions(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    layout: Any = made.builder._prompts._layout
    patch.setattr(layout, "_time", replace(layout._time, whole=False))


@pytest.mark.parametrize(
    ("name", "inject"), fault.cases, ids=lambda part: getattr(part, "__name__", part)
)
def test_a_fault_is_seen(
    name: str,
    inject: Inject[LoadedThinker],
    thinkers: dict[int, LoadedThinker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conversation = conversation_named(name)
    thinker = thinkers[conversation.seed]
    inject(thinker, monkeypatch)
    with pytest.raises(AssertionError):
        check(thinker, conversation)
