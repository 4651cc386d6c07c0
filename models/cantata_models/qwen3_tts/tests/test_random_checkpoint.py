"""The random checkpoints have the published layout."""

from __future__ import annotations

import math

import pytest

from cantata_models.qwen3_tts.random_checkpoint.codec_layout import codec_tensors
from cantata_models.qwen3_tts.random_checkpoint.configs import (
    PUBLISHED_SMALL,
    codec_config,
    model_config,
)
from cantata_models.qwen3_tts.random_checkpoint.talker_layout import talker_tensors


@pytest.mark.parametrize(
    ("kind", "tensors", "parameters"),
    [("base", 478, 914_643_008), ("custom_voice", 402, 905_788_672)],
)
def test_the_talker_is_as_large_as_published(kind: str, tensors: int, parameters: int) -> None:
    specs = list(talker_tensors(model_config(PUBLISHED_SMALL, kind)))
    assert len({spec.name for spec in specs}) == len(specs) == tensors
    assert sum(math.prod(spec.shape) for spec in specs) == parameters


def test_a_codec_frame_is_80_milliseconds() -> None:
    config = codec_config(PUBLISHED_SMALL)
    specs = list(codec_tensors(config))
    assert len({spec.name for spec in specs}) == len(specs)
    assert config["decode_upsample_rate"] / config["output_sample_rate"] == 0.08
