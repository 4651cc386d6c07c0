"""Keys of a denoising stage that make it faster or smaller, and what its model is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cantata.config import DiffusionDeployment, parse_deployment
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.denoiser import (
    DenoiserOptions,
    Hooked,
    Parallel,
    Ranks,
    Skipping,
    SkipTest,
)
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.stages.diffusion import build_stage
from cantata.stages.diffusion.loading import build_denoiser_options
from tiny_painter.plugin import PAINTER
from tiny_painter.stages import TinyDenoiser

SPEC = StageSpec("denoiser", StageKind.DIFFUSION, f"{__name__}:load")
TOLD: list[DenoiserOptions] = []
OWN = "device, host, dtype, slots, max_tokens, max_wait_s, cache, parallel, hooked"
"""Keys of the stage itself."""


def load(checkpoint: Path, options: DenoiserOptions) -> TinyDenoiser:
    """The factory that the stage calls."""
    TOLD.append(options)
    return TinyDenoiser()


def told(**keys: Any) -> DenoiserOptions:
    """What the model of a stage with these keys gets."""
    build_stage(SPEC, Path(), deployment(**keys))
    return TOLD.pop()


def deployment(**keys: Any) -> DiffusionDeployment:
    raw: dict[str, Any] = {"stages": {stage.name: {} for stage in PAINTER.stages}}
    raw["stages"]["denoiser"] = keys
    made = parse_deployment(raw, PAINTER).stages["denoiser"]
    assert isinstance(made, DiffusionDeployment)
    return made


def test_everything_is_off_by_default() -> None:
    assert told() == DenoiserOptions("cpu", "float32")


@pytest.mark.parametrize(
    ("cache", "skipping"),
    [
        ({"kind": "teacache"}, Skipping(SkipTest.INPUT, 0.2, 1)),
        (
            {"kind": "teacache", "threshold": 0.4, "coefficients": [0.0, 0.0, 0.0, 1.0, 0.5]},
            Skipping(SkipTest.INPUT, 0.4, 1, coefficients=(0.0, 0.0, 0.0, 1.0, 0.5)),
        ),
        (
            {"kind": "first_block", "threshold": 0.05, "warmup_steps": 4, "order": 1},
            Skipping(SkipTest.RESIDUAL, 0.05, 4, first_blocks=1, order=1),
        ),
        ({"kind": "dual_block"}, Skipping(SkipTest.RESIDUAL, 0.08, 8, first_blocks=1)),
        (
            {"kind": "dual_block", "first_blocks": 4, "last_blocks": 2, "order": 2},
            Skipping(SkipTest.RESIDUAL, 0.08, 8, first_blocks=4, last_blocks=2, order=2),
        ),
        (
            {"kind": "taylorseer", "interval": 5, "warmup_steps": 2},
            Skipping(SkipTest.INTERVAL, 5, 2, order=1),
        ),
    ],
)
def test_the_model_is_told_the_rule(cache: dict[str, Any], skipping: Skipping) -> None:
    assert told(cache=cache).skipping == skipping


def test_the_model_is_told_of_another_executor() -> None:
    assert told(hooked={}).hooked == Hooked()
    keys = {"attention": "flash", "offload_blocks": 2, "float8": True}
    assert told(hooked=keys).hooked == Hooked("flash", 2, float8=True)


@pytest.mark.parametrize(("kind", "ranks"), [("ulysses", 4), ("ring", 2), ("tensor", 8)])
def test_ranks_are_numbered_by_the_stage(kind: str, ranks: int) -> None:
    options = build_denoiser_options(deployment(parallel={"kind": kind, "ranks": ranks}))
    assert options.ranks == Ranks(Parallel(kind), ranks, rank=0)


@pytest.mark.parametrize(
    ("keys", "valid"),
    [
        (
            {"cache": {"kind": "teacache", "treshold": 0.1}},
            ["keys of cache: kind, threshold, warmup_steps, coefficients"],
        ),
        (
            {"cache": {"kind": "taylorseer", "threshold": 0.1}},
            ["keys of cache: kind, interval, warmup_steps, order"],
        ),
        (
            {"cache": {"threshold": 0.1}},
            ["kinds of cache: teacache, first_block, dual_block, taylorseer"],
        ),
        ({"parallel": {"rank": 2}}, ["keys of parallel: kind, ranks"]),
        (
            {"cash": {}, "hooked": {"offload": 1}},
            ["keys of hooked: attention, offload_blocks, float8", f"keys: {OWN}"],
        ),
    ],
)
def test_what_is_valid_is_told_of_the_block_at_fault(
    keys: dict[str, Any], valid: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        deployment(**keys)
    lines = caught.value.message.splitlines()
    assert [line for line in lines if ": valid " in line] == [
        f"deployment: denoiser: valid {one}" for one in valid
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"cache": {"kind": "fast"}}, "'teacache', 'first_block', 'dual_block', 'taylorseer'"),
        ({"cache": {"threshold": 0.1}}, r"cache: .*'kind'"),
        ({"cache": {"kind": "first_block", "interval": 2}}, r"first_block\.interval: Extra"),
        ({"cache": {"kind": "teacache", "threshold": 0}}, r"threshold: .* greater than 0"),
        ({"cache": {"kind": "teacache", "coefficients": [1.0]}}, "coefficients"),
        ({"cache": {"kind": "taylorseer", "interval": 1}}, r"interval: .* greater than or equal"),
        ({"parallel": {"kind": "branches", "ranks": 4}}, "`branches` takes 2 ranks, not 4"),
        ({"parallel": {"kind": "rows"}}, "'branches', 'ulysses', 'ring' or 'tensor'"),
        ({"parallel": {"kind": "ring", "ranks": 1}}, r"ranks: .* greater than or equal to 2"),
        ({"hooked": {"offload": True}}, r"hooked\.offload: Extra"),
        ({"hooked": {"offload_blocks": 0}}, r"offload_blocks: .* greater than"),
        ({"cache": {"kind": "dual_block", "warmup_steps": 0}}, r"warmup_steps: .* greater than"),
    ],
)
def test_what_is_wrong_is_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        deployment(**keys)
