"""Checks the served talker's sampling at both levels against an independent version in NumPy.

The NumPy version gets the talker's raw scores and the uniform numbers of its seed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.stages.ar.sampling import draw_counter_uniforms
from cantata_models.qwen3_tts.config import MIN_FRAMES
from cantata_models.qwen3_tts.tests.talker_driver import (
    Qwen3TtsObserved,
    Qwen3TtsTalkers,
    build_request,
    observe,
    scenario_named,
)

pytestmark = pytest.mark.vllm

ROUNDING = 1e-5
"""A uniform number this close to the edge between two codes may fall on either side."""
FRAMES = 16
"""The most of an utterance."""


def drawn(
    scores: NDArray[np.float64], uniform: float, temperature: float, top_k: int, top_p: float
) -> int:
    """Return the code for one uniform number: temperature, then top-k, then top-p, then inverse CDF
    over the codes from the most likely down."""
    if temperature == 0:
        return int(scores.argmax())
    order = np.argsort(-scores, kind="stable")[: top_k or None]
    weights = np.exp((scores[order] - scores.max()) / temperature)
    before = np.concatenate([[0.0], weights.cumsum()[:-1]]) / weights.sum()
    kept = weights[: max(1, int((before < top_p).sum()))]
    edges = kept.cumsum() / kept.sum()
    return int(order[min(int((edges <= uniform).sum()), len(kept) - 1)])


def choices(scores: NDArray[Any], uniform: float, options: tuple[float, int, float]) -> set[int]:
    """Return the codes that may be drawn under different rounding."""
    wide = scores.astype(np.float64)
    return {drawn(wide, uniform + shift, *options) for shift in (-ROUNDING, 0.0, ROUNDING)}


def code_0_scores(observed: Qwen3TtsObserved, frame: int, penalty: float) -> NDArray[np.float64]:
    """Return the scores for sampling a frame's code 0; the last score is the end code's."""
    scores: NDArray[np.float64] = observed.first_scores[frame].astype(np.float64)
    for code in set(observed.codes[:frame, 0].tolist()):
        scores[code] = scores[code] / penalty if scores[code] > 0 else scores[code] * penalty
    if frame < MIN_FRAMES:
        scores[-1] = -np.inf
    return scores


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "penalty"),
    [
        (0.9, 50, 1.0, 1.05),
        (0.9, 0, 1.0, 1.0),
        (1.3, 5, 1.0, 1.2),
        (0.7, 20, 0.6, 1.05),
        (1.0, 0, 0.3, 2.0),
        (0.0, 50, 1.0, 1.5),
    ],
)
def test_every_code_is_drawn_by_the_rules(
    talkers: Qwen3TtsTalkers, temperature: float, top_k: int, top_p: float, penalty: float
) -> None:
    scenario = scenario_named("voice")
    loaded = talkers.get(scenario.checkpoint)
    seed = 11
    options = {
        "max_new_tokens": FRAMES + 1,
        "top_k": top_k,
        "top_p": top_p,
        "repetition_penalty": penalty,
    }
    request = replace(build_request(scenario), temperature=temperature, seed=seed, options=options)
    (built,) = loaded.builder.build("request", request)
    observed = observe(loaded, built.inputs)
    uniforms = draw_counter_uniforms(seed, FRAMES + 1, loaded.talker.num_codebooks).numpy()
    how = (temperature, top_k, top_p)
    assert len(observed.codes) > 1
    for frame, codes in enumerate(observed.codes.tolist()):
        scores = code_0_scores(observed, frame, penalty)
        assert codes[0] in choices(scores, uniforms[frame, 0], how), frame
        for book, code in enumerate(codes[1:], start=1):
            residual = observed.residual_scores[frame, book - 1]
            assert code in choices(residual, uniforms[frame, book], how), (frame, book)


def test_what_a_request_leaves_open_is_the_checkpoint_s(talkers: Qwen3TtsTalkers) -> None:
    """generation_config.json: 0.9, 50 and 1 at both levels, penalty 1.05."""
    scenario = scenario_named("voice")
    loaded = talkers.get(scenario.checkpoint)
    bare = replace(
        build_request(scenario), temperature=None, seed=5, options={"max_new_tokens": FRAMES + 1}
    )
    said = {"max_new_tokens": FRAMES + 1, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.05}
    observed = []
    for request in (bare, replace(bare, temperature=0.9, options=said)):
        (built,) = loaded.builder.build("request", request)
        observed.append(observe(loaded, built.inputs).codes)
    np.testing.assert_array_equal(observed[0], observed[1])
