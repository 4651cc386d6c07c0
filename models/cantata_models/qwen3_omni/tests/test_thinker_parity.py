"""The served thinker writes what the reference writes, and its rows are the reference's: from any
media, alone and in company, prefilled whole and in parts, with little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cantata_layers.axial_rotation import AxialRotation, consecutive_axes
from cantata_layers.omni import positions, prompt
from cantata_layers.omni.preprocess import Preprocessor
from cantata_layers.omni.tests.thinker_driver import Thought
from cantata_models.qwen3_omni.encoder import Qwen3OmniMediaEncoder
from cantata_models.qwen3_omni.plugin import TALKER
from cantata_models.qwen3_omni.prompt import Qwen3OmniPromptBuilder
from cantata_models.qwen3_omni.talker_rows import Qwen3OmniTalkerInput
from cantata_models.qwen3_omni.tests.parity.scenarios import (
    SCENARIOS,
    Qwen3OmniScenario,
    scenario_named,
)
from cantata_models.qwen3_omni.tests.parity.write_goldens import rms
from cantata_models.qwen3_omni.tests.talker_driver import golden
from cantata_models.qwen3_omni.tests.thinker_driver import WHOLE, LoadedThinker
from faults import Faults, Inject

pytestmark = pytest.mark.vllm

SEEDS = sorted({scenario.seed for scenario in SCENARIOS})
OF_FIRST = {s.name: s for s in SCENARIOS if s.seed == SEEDS[0]}
ROUNDINGS = 3
"""How much farther from float64 than the reference's own float32 is allowed. Random networks
amplify rounding, and kinds of CPUs round differently: by a factor of 2 where it was measured."""

VARIANTS: dict[str, dict[str, Any]] = {
    "in_parts": {"max_num_batched_tokens": 32},
    "little_memory": {"kv_positions": 512, "max_num_batched_tokens": 64},
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
        name: LoadedThinker(folder, SEEDS[0], WHOLE.model_copy(update=settings))
        for name, settings in VARIANTS.items()
    }
    yield Loaded(thinkers, variants)
    for thinker in (*thinkers.values(), *variants.values()):
        assert set(thinker.stage.get_counts().values()) == {0}
        thinker.stage.close()


@pytest.fixture
def thinkers(loaded: Loaded) -> dict[int, LoadedThinker]:
    return loaded.thinkers


@pytest.fixture(scope="module")
def alone(loaded: Loaded) -> dict[str, Thought]:
    first = loaded.thinkers[SEEDS[0]]
    return {name: first.think({name: asked})[name] for name, asked in OF_FIRST.items()}


def check(thinker: LoadedThinker, scenario: Qwen3OmniScenario) -> None:
    """Fail if the answer, its scores, or the rows of media are not the reference's."""
    scores: list[torch.Tensor] = []
    compute = thinker.thinker.compute_logits

    def watched(hidden: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = compute(hidden)
        scores.append(found[0].clone())
        return found

    thinker.thinker.compute_logits = watched
    try:
        thought = thinker.think({"r": scenario})["r"]
    finally:
        del thinker.thinker.compute_logits
    answer = golden(scenario, "answer").tolist()
    end = thinker.thinker.end_code
    assert thought.tokens == [token for token in answer if token != end]
    assert thought.stopped == (answer[-1] == end)
    ours = torch.stack(scores).numpy()[-len(answer) :, ::5]
    check_rounding(ours, scenario, "answer_scores")
    check_rows(thinker, scenario, thought)


def check_rounding(ours: NDArray[np.float32], scenario: Qwen3OmniScenario, name: str) -> None:
    """Fail if these values are farther from the reference's than rounding explains."""
    apart = rms(ours.astype(np.float64) - golden(scenario, name))
    assert apart <= ROUNDINGS * golden(scenario, f"{name}_rounding"), name


def check_rows(thinker: LoadedThinker, scenario: Qwen3OmniScenario, thought: Thought) -> None:
    """Those of media in the user's turns; without any, or unspoken, no row leaves."""
    spoken = thinker.inputs(scenario).get(TALKER)
    sources = spoken.sources if isinstance(spoken, Qwen3OmniTalkerInput) else ()
    if len(sources):
        check_rounding(thought.all_rows[sources], scenario, "media_rows")
    else:
        assert not thought.rows


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_answer_is_the_reference_s(
    thinkers: dict[int, LoadedThinker], scenario: Qwen3OmniScenario
) -> None:
    check(thinkers[scenario.seed], scenario)


@pytest.mark.parametrize("variant", [None, *VARIANTS])
def test_in_company_each_is_answered_alike(
    loaded: Loaded, alone: dict[str, Thought], variant: str | None
) -> None:
    first = loaded.thinkers[SEEDS[0]]
    thinker = first if variant is None else loaded.variants[variant]
    together = thinker.think(OF_FIRST, every=2)
    for name, scenario in OF_FIRST.items():
        assert together[name].tokens == alone[name].tokens, name
        check_rows(first, scenario, together[name])
        if variant is None and alone[name].rows:
            np.testing.assert_array_equal(together[name].all_rows, alone[name].all_rows)


fault = Faults[LoadedThinker]()


@fault("picture")
def sections_of_positions_in_blocks(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    stack = made.builder._config.thinker.backbone
    axes = consecutive_axes(stack.mrope_section)
    other = AxialRotation(stack.layers.head_dim, stack.layers.rope_theta, axes)
    patch.setattr(made.thinker.rotation, "angles", other.angles)


@fault("picture", "video")
def later_layers_add_nothing(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    seen = Qwen3OmniMediaEncoder._encode_images
    width = made.thinker.export_width

    def shallow(self: Qwen3OmniMediaEncoder, media: Any) -> torch.Tensor:
        rows = seen(self, media).clone()
        rows[:, width:] = 0
        return rows

    patch.setattr(Qwen3OmniMediaEncoder, "_encode_images", shallow)


@fault("picture")
def levels_in_another_order(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    seen = Qwen3OmniMediaEncoder._encode_images
    width = made.thinker.export_width

    def swapped(self: Qwen3OmniMediaEncoder, media: Any) -> torch.Tensor:
        own, first, second = torch.split(seen(self, media), width, dim=1)
        return torch.cat([own, second, first], dim=1)

    patch.setattr(Qwen3OmniMediaEncoder, "_encode_images", swapped)


@fault("sound", "picture")
def rows_of_the_layer_before(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made.thinker, "_accepted", made.thinker._accepted - 1)


@fault("two_sounds")
def sounds_prepared_one_by_one(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    prepare = Preprocessor._prepare_sounds
    patch.setattr(
        Preprocessor,
        "_prepare_sounds",
        lambda self, sounds: [prepare(self, [one])[0] for one in sounds],
    )


@fault("two_pictures")
def media_in_another_order(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    build = Qwen3OmniPromptBuilder.build

    def reversed_media(self: Qwen3OmniPromptBuilder, messages: Any) -> Any:
        prompt = build(self, messages)
        media = [placement.media for placement in prompt.placements][::-1]
        swapped = [replace(p, media=m) for p, m in zip(prompt.placements, media, strict=True)]
        return replace(prompt, placements=tuple(swapped))

    patch.setattr(Qwen3OmniPromptBuilder, "build", reversed_media)


@fault("film")
def sound_behind_the_pictures(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    for module in (positions, prompt):
        patch.setattr(
            module, "is_sound", lambda film, scale: np.arange(film.rows) >= film.video.rows
        )


@fault("system")
def no_system_prompt(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    build = Qwen3OmniPromptBuilder.build
    patch.setattr(Qwen3OmniPromptBuilder, "build", lambda self, messages: build(self, messages[1:]))


@fault("text")
def experts_of_equal_weight(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    for layer in made.thinker.layers:
        gate = layer.mlp.gate
        patch.setattr(
            gate, "forward", lambda x, gate=gate: (0 * type(gate).forward(gate, x)[0], None)
        )


@fault("text")
def the_answer_is_not_fed_back(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    embed = made.thinker.embed_frames
    patch.setattr(made.thinker, "embed_frames", lambda frames: 0 * embed(frames))


@fault("text_only_video")
def whole_positions(made: LoadedThinker, patch: pytest.MonkeyPatch) -> None:
    angles = made.thinker.rotation.angles
    patch.setattr(made.thinker.rotation, "angles", lambda positions: angles(positions.floor()))


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    ("name", "inject"), fault.cases, ids=lambda part: getattr(part, "__name__", part)
)
def test_a_fault_is_seen(
    name: str,
    inject: Inject[LoadedThinker],
    thinkers: dict[int, LoadedThinker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = scenario_named(name)
    thinker = thinkers[scenario.seed]
    inject(thinker, monkeypatch)
    with pytest.raises(AssertionError):
        check(thinker, scenario)
