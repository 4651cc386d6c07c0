"""The key `tiling` of a stage that computes pictures reaches its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from cantata.config import FeedForwardDeployment, parse_deployment
from cantata.contract.data.chunks import Image
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.feed_forward import Tiling
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.stages.feed_forward import build_stage
from tiny_painter.plugin import PAINTER
from tiny_painter.stages import TinyDecoder, load_decoder

TOLD: list[Tiling | None] = []


def load_tiled(checkpoint: Path, device: torch.device, tiling: Tiling | None = None) -> TinyDecoder:
    """A factory that knows tiles."""
    TOLD.append(tiling)
    return load_decoder(checkpoint, device)


def build(factory: str, **keys: Any) -> None:
    raw: dict[str, Any] = {"stages": {stage.name: {} for stage in PAINTER.stages}}
    raw["stages"]["decoder"] = keys
    deployment = parse_deployment(raw, PAINTER).stages["decoder"]
    assert isinstance(deployment, FeedForwardDeployment)
    spec = StageSpec("decoder", StageKind.FEED_FORWARD, factory, outputs={"image": Image})
    build_stage(spec, Path(), deployment)


def test_a_model_is_told_of_its_tiles() -> None:
    build(f"{__name__}:load_tiled")
    build(f"{__name__}:load_tiled", tiling={"above": 4096})
    build(f"{__name__}:load_tiled", tiling={"above": 1, "size": 128, "stride": 96})
    assert [None, Tiling(4096, 256, 192), Tiling(1, 128, 96)] == TOLD


def test_a_model_without_tiles_refuses_them() -> None:
    build("tiny_painter.stages:load_decoder")
    with pytest.raises(ConfigError, match="decoder: tiling: this stage has no pictures"):
        build("tiny_painter.stages:load_decoder", tiling={"above": 4096})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, r"tiling\.above: Field required"),
        ({"above": 1, "size": 100}, r"size: .* multiple of 16"),
        ({"above": 1, "size": 64}, "stride 192 must be at most size 64"),
    ],
)
def test_tiles_leave_no_gap(keys: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build("tiny_painter.stages:load_decoder", tiling=keys)
