"""Published configurations load; what is not served is rejected with what is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cantata.contract.data.errors import ConfigError
from cantata_models.moss_tts.config import (
    Activation,
    Gpt2Stack,
    MossConfig,
    TokenIds,
    load_local_config,
    load_nano_config,
)
from cantata_models.moss_tts.random_checkpoint_talker import (
    LOCAL,
    NANO,
    TINY_LOCAL,
    TINY_NANO,
    local_config,
    nano_config,
)


def written(folder: Path, config: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_the_published_local(tmp_path: Path) -> None:
    config = load_local_config(written(tmp_path, local_config(LOCAL)))
    backbone = config.backbone
    assert (backbone.hidden_size, backbone.layers, backbone.intermediate_size) == (2560, 36, 9728)
    assert (backbone.heads, backbone.kv_heads, backbone.head_dim) == (32, 8, 128)
    assert (backbone.rope_theta, backbone.rms_norm_eps) == (1e6, 1e-6)
    assert config.local == Gpt2Stack(2560, 1, 32, 9728, Activation.SILU, 1e-6, 1e6, 13)
    assert config.local.head_dim == 80
    assert (config.num_codebooks, config.codebook_size, config.pad_code) == (12, 1024, 1024)
    assert config.tokens == TokenIds(151644, 151645, 151669, 151670, 151654, 151656)
    assert not config.stop_is_text


def test_the_published_nano(tmp_path: Path) -> None:
    config = load_nano_config(written(tmp_path, nano_config(NANO)))
    stack = (12, 3072, Activation.GELU_NEW, 1e-5, 1e4, 32_768)
    assert config.backbone == Gpt2Stack(768, 12, *stack)
    assert config.local == Gpt2Stack(768, 1, *stack)
    assert (config.num_codebooks, config.codebook_size, config.pad_code) == (16, 1024, 1024)
    assert config.tokens == TokenIds(4, 5, 6, 7, 8, 9)
    assert config.stop_is_text


def test_defaults_are_the_published_programs(tmp_path: Path) -> None:
    local = load_local_config(written(tmp_path, local_config(TINY_LOCAL))).generation
    nano = load_nano_config(written(tmp_path, nano_config(TINY_NANO))).generation
    assert (local.audio.temperature, local.audio.top_k, local.audio.top_p) == (1.7, 25, 0.8)
    assert (nano.audio.temperature, nano.audio.top_k, nano.audio.top_p) == (0.8, 25, 0.95)
    assert (local.repetition_penalty, nano.repetition_penalty) == (1.0, 1.2)
    assert (local.max_frames, nano.max_frames) == (4096, 375)
    for defaults in (local, nano):
        assert (defaults.stop.temperature, defaults.stop.top_k, defaults.stop.top_p) == (1, 50, 1)


def test_either_name_of_the_language_model(tmp_path: Path) -> None:
    raw = local_config(TINY_LOCAL)
    whole = load_local_config(written(tmp_path, raw))
    del raw["qwen3_config"]
    assert load_local_config(written(tmp_path, raw)) == whole
    raw["language_config"] = raw["language_config"] | {
        "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}
    }
    assert load_local_config(written(tmp_path, raw)).backbone.rope_theta == 5e5


Load = Callable[[Path], MossConfig]


@pytest.mark.parametrize(
    ("load", "path", "value", "message"),
    [
        (
            load_local_config,
            ["model_type"],
            "qwen3",
            "'qwen3' is not served; valid: 'moss_tts_local",
        ),
        (
            load_nano_config,
            ["model_type"],
            "gpt2",
            "'gpt2' is not served; valid: 'moss_tts_nano",
        ),
        (load_local_config, ["local_text_head_mode"], "full_vocab", "valid: 'binary'"),
        (load_nano_config, ["model_architecture"], "flat", "valid: 'global_local_transformer'"),
        (load_local_config, ["qwen3_config", "hidden_act"], "gelu", "valid: 'silu'"),
        (load_local_config, ["qwen3_config", "attention_bias"], True, "attention_bias true is not"),
        (load_local_config, ["qwen3_config", "rope_scaling"], {"type": "yarn"}, "valid: 'default'"),
        (load_local_config, ["qwen3_config", "hidden_size"], None, "hidden_size is missing"),
        (load_local_config, ["gpt2_config", "n_embd"], 128, "the local transformer is 128 wide"),
        (load_nano_config, ["gpt2_config", "n_head"], 3, "no even multiple of n_head"),
        (
            load_nano_config,
            ["gpt2_config", "activation_function"],
            "relu",
            "'silu', 'gelu_new'",
        ),
        (load_nano_config, ["gpt2_config", "position_embedding_type"], None, "valid: 'rope'"),
        (
            load_nano_config,
            ["gpt2_config", "scale_attn_weights"],
            False,
            "weights false is not served",
        ),
        (load_nano_config, ["audio_codebook_sizes"], [64, 64, 64, 32], "must be n_vq"),
        (load_nano_config, ["audio_codebook_sizes"], [64], "must be n_vq"),
        (load_nano_config, ["audio_pad_token_id"], 63, "is a code of a codebook"),
        (load_nano_config, ["audio_end_token_id"], 5000, "audio_end is outside the"),
        (load_nano_config, ["im_start_token_id"], "4", "im_start_token_id must be int"),
    ],
)
def test_what_cannot_be_served_is_rejected(
    tmp_path: Path, load: Load, path: list[str], value: Any, message: str
) -> None:
    tiny = local_config(TINY_LOCAL) if load is load_local_config else nano_config(TINY_NANO)
    raw = json.loads(json.dumps(tiny))
    place = raw
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ConfigError, match=message):
        load(written(tmp_path, raw))


@pytest.mark.parametrize("load", [load_local_config, load_nano_config])
def test_a_damaged_file_is_named(tmp_path: Path, load: Load) -> None:
    with pytest.raises(ConfigError, match=r"config\.json"):
        load(tmp_path)
    (tmp_path / "config.json").write_bytes(b"{")
    with pytest.raises(ConfigError, match=r"config\.json"):
        load(tmp_path)
