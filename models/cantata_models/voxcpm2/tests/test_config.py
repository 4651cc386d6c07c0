"""The published config.json, and the sizes that follow from it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.random_tensors import write_json
from cantata_models.voxcpm2.config import (
    AUDIO_START,
    REFERENCE_END,
    REFERENCE_START,
    load_config,
)
from cantata_models.voxcpm2.long_rope import build_cos_sin
from cantata_models.voxcpm2.patch_solver import draw_noise
from cantata_models.voxcpm2.prompt import VoxCpm2Mode
from cantata_models.voxcpm2.prompt_layout import lay_out
from cantata_models.voxcpm2.random_checkpoint import PUBLISHED, TINY, TINY_STRETCHED, talker_tensors


def write(folder: Path, config: dict[str, Any]) -> Path:
    write_json(folder / "config.json", config)
    return folder


def test_the_published_shapes(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, PUBLISHED))
    assert (config.base.layers, config.residual.layers) == (28, 8)
    assert config.base.rope is not None
    assert config.residual.rope is None
    assert config.frame_size == 256
    assert (config.dit.hidden_size, config.dit.heads, config.dit.kv_heads) == (1024, 16, 2)
    assert config.dit.rms_norm_eps == config.base.rms_norm_eps == 1e-5


def test_the_published_size_is_that_of_the_file() -> None:
    """4.6 GB in bfloat16."""
    specs = list(talker_tensors(PUBLISHED))
    assert len({spec.name for spec in specs}) == len(specs)
    parameters = sum(math.prod(spec.shape) for spec in specs)
    assert 2.25e9 < parameters < 2.35e9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"architecture": "voxcpm"}, "architecture is 'voxcpm', expected 'voxcpm2'"),
        (
            {"lm_config": {**TINY["lm_config"], "use_mup": True}},
            "use_mup true is not served",
        ),
        ({"lm_config": {**TINY["lm_config"], "kv_channels": 64}}, "16 factors for heads of 64"),
        ({"dit_config": {**TINY["dit_config"], "dit_mean_mode": True}}, "dit_mean_mode"),
        (
            {"lm_config": {**TINY["lm_config"], "no_rope": True}},
            "no_rope true is not served",
        ),
        ({"lm_config": {**TINY["lm_config"], "num_attention_heads": 0}}, "must be at least 1"),
        ({"lm_config": {**TINY["lm_config"], "vocab_size": 104}}, "no room for tokens"),
        ({"lm_config": {**TINY["lm_config"], "num_key_value_heads": 3}}, "2 heads cannot share 3"),
        ({"residual_lm_num_layers": 0}, "residual_lm_num_layers must be at least 1, not 0"),
        ({"lm_config": {}}, "lm_config: num_attention_heads is missing|use_mup true is not served"),
    ],
)
def test_another_kind_of_model_is_named(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path, {**TINY, **changed}))


def test_which_factors_count(tmp_path: Path) -> None:
    short, long = (
        load_config(write(tmp_path, config)).base.rope for config in (TINY, TINY_STRETCHED)
    )
    assert short is not None
    assert long is not None
    assert (short.factors[-1], long.factors[-1]) == (1.6, 5.0)
    cos, _ = build_cos_sin(short, 3)
    assert torch.equal(cos[0], torch.ones(16))
    cos, sin = build_cos_sin(long, 3)
    scale = math.sqrt(1 + math.log(4) / math.log(1024))
    torch.testing.assert_close(cos[0], torch.full((16,), scale))
    torch.testing.assert_close(sin[2, -1], torch.tensor(scale * math.sin(2 / 5 / 1e4 ** (30 / 32))))


@pytest.mark.parametrize("latent_dim", [64, 6])
def test_noise_is_one_draw_for_each_patch(latent_dim: int) -> None:
    torch.manual_seed(9)
    patches = [torch.randn((1, latent_dim, 4)) for _ in range(5)]
    noise = draw_noise(9, 5, latent_dim, 4)
    for number, patch in enumerate(patches):
        assert torch.equal(noise[number].view(4, latent_dim), patch[0].T)
    assert torch.equal(draw_noise(9, 2, latent_dim, 4), noise[:2])


def test_the_order_of_a_prompt() -> None:
    recording = torch.arange(8.0).view(4, 2)
    plain = lay_out((5, 6), VoxCpm2Mode.PLAIN, recording[:0])
    assert plain.tokens.tolist() == [5, 6, AUDIO_START]
    assert plain.context is None
    clone = lay_out((5,), VoxCpm2Mode.CLONE, recording)
    assert clone.tokens.tolist() == [REFERENCE_START, 0, 0, 0, 0, REFERENCE_END, 5, AUDIO_START]
    assert clone.is_patch.tolist() == [False, True, True, True, True, False, False, False]
    assert clone.context is None, "what is spoken follows text"
    continued = lay_out((5,), VoxCpm2Mode.CONTINUATION, recording)
    assert continued.is_patch.tolist() == [False, False, True, True, True, True]
    assert torch.equal(continued.context, recording[1:])  # type: ignore[arg-type]
    both = lay_out((5,), VoxCpm2Mode.COMBINED, recording)
    assert both.is_patch.tolist() == [False, True, True, False, False, False, True, True]
    assert both.tokens.tolist()[3:6] == [REFERENCE_END, 5, AUDIO_START]
    assert torch.equal(both.context, recording[2:])  # type: ignore[arg-type]
