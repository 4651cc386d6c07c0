"""Keys of a denoising stage that make it faster or smaller, and what its model is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cantata.config import DiffusionDeployment, parse_deployment
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.denoiser import DenoiserOptions
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.contract.model.skipping import Skipping, SkipTest
from cantata.engine.diffusion import build_stage
from tiny_painter.plugin import PAINTER
from tiny_painter.stages import TinyDenoiser

SPEC = StageSpec("denoiser", StageKind.DIFFUSION, f"{__name__}:load")
TOLD: list[DenoiserOptions] = []


def load(checkpoint: Path, options: DenoiserOptions) -> TinyDenoiser:
    """The factory that the stage calls."""
    TOLD.append(options)
    return TinyDenoiser()


def told(**keys: Any) -> DenoiserOptions:
    """What the model of a stage with these keys gets."""
    build_stage(SPEC, Path(), deployment(**keys))
    return TOLD.pop()


def deployment(**keys: Any) -> DiffusionDeployment:
    raw = {"stages": {stage.name: {} for stage in PAINTER.stages}}
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


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"cache": {"kind": "fast"}}, "'teacache', 'first_block', 'dual_block', 'taylorseer'"),
        ({"cache": {"threshold": 0.1}}, r"cache: .*'kind'"),
        ({"cache": {"kind": "first_block", "interval": 2}}, r"first_block\.interval: Extra"),
        ({"cache": {"kind": "teacache", "threshold": 0}}, r"threshold: .* greater than 0"),
        ({"cache": {"kind": "teacache", "coefficients": [1.0]}}, "coefficients"),
        ({"cache": {"kind": "taylorseer", "interval": 1}}, r"interval: .* greater than or equal"),
        ({"cache": {"kind": "dual_block", "warmup_steps": 0}}, r"warmup_steps: .* greater than"),
    ],
)
def test_what_is_wrong_is_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        deployment(**keys)
