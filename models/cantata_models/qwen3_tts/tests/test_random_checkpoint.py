"""The random checkpoints have the published layout."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cantata_layers.random_tensors import write_json
from cantata_models.qwen3_tts.codec import FOLDER
from cantata_models.qwen3_tts.random_checkpoint import (
    PUBLISHED_LARGE,
    PUBLISHED_SMALL,
    codec_config,
    codec_tensors,
    model_config,
    talker_tensors,
)


@pytest.mark.parametrize(
    ("kind", "tensors", "parameters"),
    [("base", 478, 914_643_008), ("custom_voice", 402, 905_788_672)],
)
def test_the_talker_is_as_large_as_published(kind: str, tensors: int, parameters: int) -> None:
    specs = list(talker_tensors(model_config(PUBLISHED_SMALL, kind)))
    assert len({spec.name for spec in specs}) == len(specs) == tensors
    assert sum(math.prod(spec.shape) for spec in specs) == parameters


def test_the_larger_talker_is_twice_as_wide_around_the_same_predictor() -> None:
    small, large = (
        {spec.name: spec.shape for spec in talker_tensors(model_config(shape, "base"))}
        for shape in (PUBLISHED_SMALL, PUBLISHED_LARGE)
    )
    mlp, head = "talker.model.layers.27.mlp.up_proj.weight", "talker.codec_head.weight"
    assert (small[mlp], large[mlp]) == ((3072, 1024), (6144, 2048))
    assert (small[head], large[head]) == ((3072, 1024), (3072, 2048))
    stack = "talker.code_predictor.model.layers."
    assert {n: s for n, s in small.items() if n.startswith(stack)} == {
        n: s for n, s in large.items() if n.startswith(stack)
    }
    projection = "talker.code_predictor.small_to_mtp_projection"
    assert large.keys() - small.keys() == {f"{projection}.weight", f"{projection}.bias"}
    assert large[f"{projection}.weight"] == (1024, 2048)


def test_a_codec_frame_is_80_milliseconds(tmp_path: Path) -> None:
    config = codec_config(PUBLISHED_SMALL)
    (tmp_path / FOLDER).mkdir()
    write_json(tmp_path / FOLDER / "config.json", config)
    specs = list(codec_tensors(tmp_path))
    assert len({spec.name for spec in specs}) == len(specs)
    assert config["decode_upsample_rate"] / config["output_sample_rate"] == 0.08
