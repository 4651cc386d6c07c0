"""The served stages write what the reference writes, from rows that are the reference's: alone and
in company, prefilled whole and in parts, with little memory, from either form of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from cantata.contract.data.chunks import Rows
from cantata.contract.data.request import SamplingOptions
from cantata_layers.omni.inputs import ThinkerInput
from cantata_layers.omni.tests.thinker_driver import Thought
from cantata_models.qwen3_asr import encoder, transcription_builder
from cantata_models.qwen3_asr.encoder import FeatureExtractor
from cantata_models.qwen3_asr.plugin import ENCODER, THINKER
from cantata_models.qwen3_asr.prompt import TranscriptionPrompts
from cantata_models.qwen3_asr.tests.parity.scenarios import (
    SCENARIOS,
    Qwen3AsrScenario,
    scenario_named,
)
from cantata_models.qwen3_asr.tests.parity.write_goldens import pick_rows, pick_scores, rms
from cantata_models.qwen3_asr.tests.thinker_driver import WHOLE, LoadedRecognizer, golden
from faults import Faults, Inject

pytestmark = pytest.mark.vllm

FIRST = SCENARIOS[0].seed
OF_FIRST = {s.name: s for s in SCENARIOS if s.seed == FIRST}
ROW_ATOL = 1e-4
LOGPROB_ATOL = 1e-5
ROUNDINGS = 3
"""How much farther from float64 than the reference's own float32 is allowed. Random networks
amplify rounding, and kinds of CPUs round differently."""
VARIANTS: dict[str, dict[str, Any]] = {
    "in_parts_with_little_memory": {"kv_positions": 512, "max_num_batched_tokens": 32},
    "prefixes": {"prefix_caching": True},
}
Key = tuple[int, bool, bool]
"""Seed, whether the head is the table of embeddings, whether in the publisher's form."""


@dataclass(frozen=True)
class LoadedForms:
    """All of one process. WHY at once: an engine that ends takes what others need along."""

    recognizers: Mapping[Key, LoadedRecognizer]
    variants: Mapping[str, LoadedRecognizer]
    """Of the first seed, otherwise deployed."""

    def get(
        self, scenario: Qwen3AsrScenario, *, is_published: bool | None = None
    ) -> LoadedRecognizer:
        """The one of a scenario's checkpoint, in the publisher's form unless its head is tied."""
        form = not scenario.is_tied if is_published is None else is_published
        return self.recognizers[scenario.seed, scenario.is_tied, form]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadedForms]:
    folder: Callable[[], Path] = lambda: tmp_path_factory.mktemp("recognizer")  # noqa: E731
    keys = {(s.seed, s.is_tied, not s.is_tied) for s in SCENARIOS} | {(FIRST, False, False)}
    recognizers = {
        (seed, is_tied, is_published): LoadedRecognizer(
            folder(), seed, is_tied=is_tied, is_published=is_published
        )
        for seed, is_tied, is_published in sorted(keys)
    }
    variants = {
        name: LoadedRecognizer(folder(), FIRST, deployment=WHOLE.model_copy(update=settings))
        for name, settings in VARIANTS.items()
    }
    yield LoadedForms(recognizers, variants)
    for recognizer in (*recognizers.values(), *variants.values()):
        assert set(recognizer.stage.get_counts().values()) == {0}
        recognizer.stage.close()


@pytest.fixture(scope="module")
def alone(loaded: LoadedForms) -> dict[str, Thought]:
    return {name: loaded.get(one).recognize({name: one})[name] for name, one in OF_FIRST.items()}


def encode(recognizer: LoadedRecognizer, scenario: Qwen3AsrScenario) -> NDArray[np.float32]:
    """[M, D]: the rows of a scenario's sound."""
    with torch.inference_mode():
        [made] = recognizer.encoder.run([recognizer.inputs(scenario)[ENCODER]])
    assert isinstance(made, Mapping)
    rows = made["rows"]
    assert isinstance(rows, Rows)
    return rows.values


def check(recognizer: LoadedRecognizer, scenario: Qwen3AsrScenario) -> None:
    """Fail if prompt, rows, answer or the answer's probabilities are not the reference's."""
    thinker = recognizer.inputs(scenario)[THINKER]
    assert isinstance(thinker, ThinkerInput)
    np.testing.assert_array_equal(thinker.tokens, golden(scenario, "tokens"))
    rows = pick_rows(encode(recognizer, scenario))
    np.testing.assert_allclose(rows, golden(scenario, "rows"), rtol=0, atol=ROW_ATOL)
    scores: list[torch.Tensor] = []
    compute = recognizer.thinker.compute_logits

    def watched(hidden: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = compute(hidden)
        scores.append(found[0].clone())
        return found

    recognizer.thinker.compute_logits = watched
    try:
        thought = recognizer.recognize({"r": scenario})["r"]
    finally:
        del recognizer.thinker.compute_logits
    check_answer(recognizer, scenario, thought)
    answer = golden(scenario, "answer")
    ours = torch.stack(scores).double().log_softmax(dim=1).numpy()[-len(answer) :]
    # They leave with the tokens; the golden has every fifth score.
    chosen = ours[np.arange(len(thought.tokens)), thought.tokens]
    np.testing.assert_allclose(thought.logprobs, chosen, rtol=0, atol=LOGPROB_ATOL)
    apart = rms(pick_scores(ours) - golden(scenario, "scores"))
    assert apart <= ROUNDINGS * golden(scenario, "scores_rounding")


def check_answer(
    recognizer: LoadedRecognizer, scenario: Qwen3AsrScenario, thought: Thought
) -> None:
    """Fail if the tokens, or the text, are not the reference's."""
    talker = recognizer.thinker
    ends = (talker.end_code, talker._other_end)
    answer = golden(scenario, "answer").tolist()
    assert thought.tokens == [token for token in answer if token not in ends]
    assert thought.stopped == (answer[-1] in ends)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_answer_is_the_reference_s(loaded: LoadedForms, scenario: Qwen3AsrScenario) -> None:
    check(loaded.get(scenario), scenario)


@pytest.mark.parametrize("name", ["auto", "chinese_named", "long"])
def test_a_checkpoint_that_transformers_saved_answers_alike(loaded: LoadedForms, name: str) -> None:
    scenario = scenario_named(name)
    check(loaded.get(scenario, is_published=False), scenario)


@pytest.mark.parametrize("variant", [None, *VARIANTS])
def test_in_company_each_is_answered_alike(
    loaded: LoadedForms, alone: dict[str, Thought], variant: str | None
) -> None:
    recognizer = loaded.get(SCENARIOS[0]) if variant is None else loaded.variants[variant]
    together = recognizer.recognize(OF_FIRST, every=2)
    for name in OF_FIRST:
        assert together[name].tokens == alone[name].tokens, name


def test_a_sound_s_rows_do_not_depend_on_its_company(loaded: LoadedForms) -> None:
    recognizer = loaded.get(SCENARIOS[0])
    sounds = [recognizer.inputs(scenario)[ENCODER] for scenario in OF_FIRST.values()]
    with torch.inference_mode():
        together = recognizer.encoder.run(sounds)
    for scenario, made in zip(OF_FIRST.values(), together, strict=True):
        assert isinstance(made, Mapping)
        rows = made["rows"]
        assert isinstance(rows, Rows)
        np.testing.assert_array_equal(rows.values, encode(recognizer, scenario))


fault = Faults[LoadedRecognizer]()


@fault("auto", "long")
def no_final_norm(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made.thinker.norm, "forward", lambda x, residual: (x + residual, residual))


@fault("auto")
def positions_twice_as_far_apart(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    forward = type(made.thinker).forward
    patch.setattr(
        made.thinker,
        "forward",
        lambda input_ids, positions, *args, **named: forward(
            made.thinker, input_ids, 2 * positions, *args, **named
        ),
    )


@fault("english")
def the_answer_is_not_fed_back(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    embed = made.thinker.embed_frames
    patch.setattr(made.thinker, "embed_frames", lambda frames: 0 * embed(frames))


@fault("english")
def the_head_is_another_table(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    weight = made.thinker.lm_head.weight
    patch.setattr(weight, "data", weight.data.roll(1, dims=0))


@fault("auto", "silence")
def the_projector_is_linear(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    projector = made.encoder._projector  # type: ignore[attr-defined]
    patch.setattr(projector, "forward", lambda x: projector.linear_2(projector.linear_1(x)))


@fault("long")
def attention_over_the_whole_sound(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made.encoder._encoder, "n_window_infer", 100_000)  # type: ignore[attr-defined]


@fault("one_attention_window")
def attention_inside_one_second(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made.encoder._encoder, "n_window_infer", 100)  # type: ignore[attr-defined]


@fault("auto")
def every_second_has_the_first_position(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    table = made.encoder._encoder.positional_embedding.positional_embedding  # type: ignore[attr-defined]
    patch.setattr(table, "data", table.data[:1].expand_as(table.data))


@fault("under_a_second", "auto")
def the_last_window_is_filled_with_quiet(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    quiet = SimpleNamespace(
        pad=lambda mels, sides: functional.pad(mels, sides, value=-1.5), gelu=functional.gelu
    )
    patch.setattr(encoder, "functional", quiet)


@fault("short")
def a_short_sound_is_not_filled_to_half_a_second(
    made: LoadedRecognizer, patch: pytest.MonkeyPatch
) -> None:
    patch.setattr(encoder, "MIN_SAMPLES", 0)


@fault("filipino")
def sounds_end_with_a_part_of_a_frame(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    extract = FeatureExtractor.extract
    patch.setattr(
        FeatureExtractor,
        "extract",
        lambda self, samples: extract(self, np.pad(samples, (0, -len(samples) % 160))),
    )


@fault("loud", "auto")
def sounds_are_made_equally_loud(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    extract = FeatureExtractor.extract
    patch.setattr(
        FeatureExtractor,
        "extract",
        lambda self, samples: extract(self, samples / (2 * np.abs(samples).max())),
    )


@fault("auto")
def mels_are_upside_down(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    extract = FeatureExtractor.extract

    def turned(self: FeatureExtractor, samples: NDArray[np.float32]) -> Any:
        right = extract(self, samples)
        return replace(right, mels=np.ascontiguousarray(right.mels[::-1]))

    patch.setattr(FeatureExtractor, "extract", turned)


@fault("auto", "english")
def no_system_turn_where_nothing_is_named(
    made: LoadedRecognizer, patch: pytest.MonkeyPatch
) -> None:
    build = TranscriptionPrompts.build

    def without(self: TranscriptionPrompts, rows: int, context: str, language: str | None) -> Any:
        whole = build(self, rows, context, language)
        cut = int(np.flatnonzero(whole.tokens == self._ids.im_start)[1])
        return replace(whole, tokens=whole.tokens[cut:], sound=whole.sound - cut)

    patch.setattr(TranscriptionPrompts, "build", without)


@fault("named")
def names_without_spaces_around_them(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    build = TranscriptionPrompts.build
    patch.setattr(
        TranscriptionPrompts,
        "build",
        lambda self, rows, context, language: build(
            self, rows, " ".join(context.split()), language
        ),
    )


@fault("english", "filipino")
def the_language_s_tag_for_its_name(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made.builder, "_find", lambda tag: tag)


@fault("english")
def the_mark_behind_the_language_as_letters(
    made: LoadedRecognizer, patch: pytest.MonkeyPatch
) -> None:
    patch.setattr(
        TranscriptionPrompts,
        "_list_answer_begin",
        lambda self, language: self._encode(f"language {language}") + self._encode("<asr text>"),
    )


@fault("auto")
def rows_one_token_late(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    build = TranscriptionPrompts.build

    def late(self: TranscriptionPrompts, *args: Any) -> Any:
        right = build(self, *args)
        return replace(right, sound=right.sound + 1)

    patch.setattr(TranscriptionPrompts, "build", late)


def _sample_otherwise(patch: pytest.MonkeyPatch, **options: float) -> None:
    patch.setattr(
        transcription_builder,
        "SamplingOptions",
        lambda **named: SamplingOptions(**{**named, **options}),
    )


@fault("english", "named")
def warm_instead_of_greedy(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    _sample_otherwise(patch, temperature=3.0)


@fault("english")
def a_penalty_of_repetition(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    _sample_otherwise(patch, repetition_penalty=4.0)


@fault("auto", "english")
def probabilities_of_the_next_frame(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    late: list[dict[int, float]] = [{}]
    step = made.thinker.talker_step
    take = step.take_logprobs

    def take_late() -> dict[int, float]:
        late.append(take())
        return late.pop(0) or late[0]

    patch.setattr(step, "take_logprobs", take_late)


@fault("auto")
def probabilities_after_a_temperature(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    step = made.thinker.talker_step
    keep = step._keep_logprobs
    patch.setattr(step, "_keep_logprobs", lambda logits, *rest: keep(logits / 0.7, *rest))


@fault("auto")
def queries_are_not_normed(made: LoadedRecognizer, patch: pytest.MonkeyPatch) -> None:
    for layer in made.thinker.layers:
        patch.setattr(layer.self_attn.q_norm, "forward", lambda x: x)


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    ("name", "inject"), fault.cases, ids=lambda part: getattr(part, "__name__", part)
)
def test_a_fault_is_seen(
    name: str,
    inject: Inject[LoadedRecognizer],
    loaded: LoadedForms,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = scenario_named(name)
    recognizer = loaded.get(scenario)
    inject(recognizer, monkeypatch)
    with pytest.raises(AssertionError):
        check(recognizer, scenario)
