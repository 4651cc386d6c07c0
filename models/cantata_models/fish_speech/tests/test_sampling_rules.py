"""Every code is drawn by the rules, checked against a statement of them in NumPy.

The statement gets the talker's scores and the uniform numbers of its seed.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cantata.contract.model.sampling import CodeSampling
from cantata.stages.ar.sampling import draw_counter_uniforms
from cantata_models.fish_speech.sampling import draw_codes, draw_unrepeated, penalize_recent
from cantata_models.fish_speech.tests.parity.scenarios import scenario_named
from cantata_models.fish_speech.tests.sampling_statement import (
    How,
    choices,
    distribution,
    penalized,
    s2_choices,
)
from cantata_models.fish_speech.tests.talker_driver import FishTalkers, build_request, observe

pytestmark = pytest.mark.vllm

FRAMES = 20
"""More than any law looks back."""
SEED = 15


def wide(scores: torch.Tensor) -> NDArray[np.float64]:
    return np.asarray(scores.numpy(), np.float64)


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize(
    "how", [How(0.8, 0.8, 30), How(1.4, 0.99, 5), How(0.3, 0.5), How(2.0, 1.0, 12), How(0.0, 0.8)]
)
def test_every_code_of_s2_is_drawn_by_the_rules(talkers: FishTalkers, how: How) -> None:
    scenario = scenario_named("plain")
    options = {"max_new_tokens": FRAMES + 1, "top_k": how.top_k, "top_p": how.top_p}
    loaded = talkers.of(scenario)
    request = build_request(scenario, temperature=how.temperature, seed=SEED, options=options)
    observed = observe(loaded, request)
    # One number for each codebook, and the second draw's.
    uniforms = draw_counter_uniforms(SEED, FRAMES, 11).tolist()
    spoken: list[int] = []
    drawn_again = 0
    assert len(observed.codes) > 1
    for frame, codes in enumerate(observed.codes.tolist()):
        numbers = uniforms[frame][0], uniforms[frame][10]
        first = wide(observed.first_scores[frame])
        assert codes[0] in s2_choices(first, numbers, how, spoken, loaded.talker.end_code), frame
        for book, code in enumerate(codes[1:], start=1):
            scores = wide(observed.residual_scores[frame, book - 1])
            assert code in choices(scores, uniforms[frame][book], how), (frame, book)
        drawn_again += codes[0] not in choices(first, numbers[0], how)
        spoken.append(codes[0])
    assert drawn_again or how.temperature < 1


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize(
    ("how", "penalty"),
    [(How(0.7, 0.7), 1.2), (How(1.5, 0.95), 1.6), (How(0.0, 1.0), 2.0), (How(0.9, 0.6), 1.0)],
)
def test_every_code_of_s1_is_drawn_by_the_rules(
    talkers: FishTalkers, how: How, penalty: float
) -> None:
    scenario = scenario_named("s1_plain")
    loaded = talkers.of(scenario)
    options = {
        "max_new_tokens": FRAMES + 1,
        "top_p": how.top_p,
        "repetition_penalty": penalty,
    }
    request = build_request(scenario, temperature=how.temperature, seed=SEED, options=options)
    observed = observe(loaded, request)
    uniforms = draw_counter_uniforms(SEED, FRAMES, 10).tolist()
    tokens, begin = loaded.talker.tokens, loaded.statement.begin
    iterate_code = {token: code for code, token in enumerate(tokens.tolist())}
    for frame, codes in enumerate(observed.codes.tolist()):
        # The published program keeps columns of a token and all codes in a table of zeros, begins
        # with the second frame, and looks at sixteen columns, also while they are not all filled.
        columns = observed.codes[1:frame].tolist()
        columns = (columns if len(columns) > 16 else [*columns, *[None] * (16 - len(columns))])[
            -16:
        ]
        window = columns if frame else []
        repeated = set()
        if window:
            oldest = window[0]
            token = 0 if oldest is None else int(tokens[oldest[0]])
            code0 = token - begin if begin <= token < begin + loaded.statement.size else 0
            codes0 = (token, 0) if oldest is None else (token, code0, *oldest[1:])
            repeated = {iterate_code[each] for each in codes0}
        first = penalized(wide(observed.first_scores[frame]), repeated, penalty)
        assert codes[0] in choices(first, uniforms[frame][0], how), frame
        for book, code in enumerate(codes[1:], start=1):
            said = {0 if past is None else past[book] for past in window}
            scores = penalized(wide(observed.residual_scores[frame, book - 1]), said, penalty)
            assert code in choices(scores, uniforms[frame][book], how), (frame, book)


def test_what_a_request_leaves_open_is_as_published(talkers: FishTalkers) -> None:
    for name, said, temperature in (
        ("plain", {"top_k": 30, "top_p": 0.8}, 0.8),
        ("s1_plain", {"top_p": 0.7, "repetition_penalty": 1.2}, 0.7),
    ):
        scenario = scenario_named(name)
        loaded = talkers.of(scenario)
        bare = build_request(scenario, temperature=None, seed=5, options={"max_new_tokens": 12})
        options = {"max_new_tokens": 12, **said}
        full = build_request(scenario, temperature=temperature, seed=5, options=options)
        observed = [observe(loaded, request).codes for request in (bare, full)]
        np.testing.assert_array_equal(observed[0], observed[1])


def test_s2_accepts_a_repetition_penalty_and_does_not_use_it(talkers: FishTalkers) -> None:
    scenario = scenario_named("plain")
    loaded = talkers.of(scenario)
    said = [
        observe(
            loaded,
            build_request(
                scenario, seed=3, options={"max_new_tokens": 12, "repetition_penalty": penalty}
            ),
        ).codes
        for penalty in (1.0, 2.0)
    ]
    np.testing.assert_array_equal(said[0], said[1])


def sampling(rows: int, how: How) -> CodeSampling:
    return CodeSampling(
        torch.full((rows,), how.temperature),
        torch.full((rows,), how.top_k),
        torch.full((rows,), how.top_p),
    )


def test_the_shares_of_codes_are_those_of_the_filtered_distribution() -> None:
    """The temperature acts after the filters: in the other order the codes left would differ."""
    scores = torch.tensor([2.0, 1.0, 0.0, 0.5, -1.0])
    how = How(2.0, 0.8)
    uniforms = (torch.arange(20_000) + 0.5) / 20_000
    codes = draw_codes(scores.expand(20_000, -1), uniforms, sampling(20_000, how))
    shares = codes.bincount(minlength=5).numpy() / 20_000
    order, weights = distribution(wide(scores), how)
    expected = np.zeros(5)
    expected[order] = weights
    np.testing.assert_allclose(shares, expected, atol=1e-3)
    assert (expected > 0).tolist() == [True, True, False, False, False]


def test_a_code_just_said_is_drawn_again_but_not_the_first_frame_s_nor_the_end() -> None:
    # The first draw always says 1; the second, by its number, 0.
    scores = torch.tensor([1.0, 1.3, -0.2, -9.0]).expand(6, -1)
    uniforms = torch.tensor([[0.0, 0.99]]).expand(6, -1)
    recent = torch.full((6, 11), -1)
    recent[0, -1] = 1  # the first frame's
    recent[1, -2:] = torch.tensor([1, 2])  # the first frame's, behind which another came
    recent[2, -2:] = torch.tensor([2, 1])
    recent[3] = torch.tensor([0, 1, *[2] * 9])  # ten frames ago
    recent[4] = torch.tensor([1, *[2] * 10])  # eleven frames ago
    how = sampling(6, How(0.5, 0.9))
    drawn = draw_unrepeated(scores, uniforms, how, recent, end_code=3)
    assert drawn.tolist() == [1, 1, 0, 0, 1, 1]
    assert draw_unrepeated(scores, uniforms, how, recent, end_code=1).tolist() == [1] * 6
    greedy = sampling(6, How(0.0, 0.9))
    assert draw_unrepeated(scores, uniforms, greedy, recent, end_code=3).tolist() == [1] * 6


def test_the_penalty_forgets_after_sixteen_frames_and_never_counts_the_first() -> None:
    scores = torch.tensor([[4.0, -4.0, 4.0, 4.0]]).expand(5, -1)
    spoken = torch.full((5, 40), -1)
    spoken[1, 0] = 2  # only the first frame: the window has zeros alone
    spoken[2, :3] = torch.tensor([2, 1, 3])  # the first frame's code is free
    spoken[3, :17] = torch.tensor([2, *[1] * 15, 7])  # the window is full; 7 cannot be chosen
    spoken[4, :18] = torch.tensor([2, 3, *[1] * 16])  # 3 was said seventeen frames ago
    found = penalize_recent(scores, spoken, torch.full((5,), 2.0))
    assert found.tolist() == [
        [4.0, -4.0, 4.0, 4.0],
        [2.0, -4.0, 4.0, 4.0],
        [2.0, -8.0, 4.0, 2.0],
        [4.0, -8.0, 4.0, 4.0],
        [4.0, -8.0, 4.0, 4.0],
    ]


def test_a_draw_does_not_depend_on_the_rows_beside_it() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(9, 500, generator=generator) * 3
    uniforms = torch.rand(9, 2, generator=generator)
    recent = torch.randint(0, 40, (9, 11), generator=generator)
    how = CodeSampling(
        torch.tensor([0.0, 0.7, 1.0, 0.9, 0.8, 0.0, 1.2, 0.5, 1.0]),
        torch.tensor([0, 30, 0, 2, 5, 0, 0, 100, 1]),
        torch.linspace(0.3, 1.0, 9),
    )
    together = draw_unrepeated(scores, uniforms, how, recent, end_code=499)
    for row in range(9):
        part = slice(row, row + 1)
        one = CodeSampling(how.temperature[part], how.top_k[part], how.top_p[part])
        alone = draw_unrepeated(scores[part], uniforms[part], one, recent[part], end_code=499)
        assert alone == together[row]
