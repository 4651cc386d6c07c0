"""Published configurations load; unsupported values are rejected with a list of valid ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cantata.contract.data.errors import ConfigError
from cantata_models.qwen3_tts.config import ModelKind, load_config
from cantata_models.qwen3_tts.random_checkpoint import (
    GENERATION_CONFIG,
    PUBLISHED_SMALL,
    TINY_LARGE,
    TINY_SMALL,
    model_config,
)


def write(folder: Path, config: Mapping[str, Any], generation: Any = GENERATION_CONFIG) -> Path:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    return folder


def test_the_published_small_model(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, model_config(PUBLISHED_SMALL, "custom_voice")))
    assert config.kind is ModelKind.CUSTOM_VOICE
    assert not config.follows_instructions
    talker = config.talker
    assert (talker.hidden_size, talker.layers, talker.heads, talker.kv_heads) == (1024, 28, 16, 8)
    assert (talker.head_dim, talker.rope_theta, talker.vocab_size) == (128, 1e6, 3072)
    assert (config.predictor.layers, config.predictor.vocab_size) == (5, 2048)
    assert (config.codec.pad, config.codec.bos, config.codec.eos) == (2148, 2149, 2150)
    assert (config.text.pad, config.text.bos, config.text.eos) == (151671, 151672, 151673)
    assert config.num_codebooks == 16
    assert config.generation.first.temperature == 0.9
    assert config.generation.residual.top_k == 50
    assert config.generation.repetition_penalty == 1.05


def test_who_follows_instructions(tmp_path: Path) -> None:
    followed = {
        (shape.size_name, kind): load_config(
            write(tmp_path, model_config(shape, kind))
        ).follows_instructions
        for shape in (TINY_SMALL, TINY_LARGE)
        for kind in ("custom_voice", "voice_design", "base")
    }
    assert {key for key, follows in followed.items() if follows} == {
        ("1b7", "custom_voice"),
        ("1b7", "voice_design"),
        ("0b6", "voice_design"),
    }


def test_dialects_belong_to_voices(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, model_config(TINY_SMALL, "custom_voice")))
    assert config.dialects == {"dylan": "beijing_dialect"}
    assert config.spoken_languages == ("chinese", "english", "german")


def test_what_generation_config_leaves_out_is_the_reference_s(tmp_path: Path) -> None:
    raw = model_config(TINY_SMALL, "custom_voice")
    bare = load_config(write(tmp_path, raw, None)).generation
    assert (bare.first.temperature, bare.first.top_k, bare.max_new_tokens) == (0.9, 50, 2048)
    greedy = {"do_sample": False, "subtalker_temperature": 0.5, "subtalker_top_k": 7}
    said = load_config(write(tmp_path, raw, greedy)).generation
    assert (said.first.temperature, said.residual.temperature) == (0.0, 0.5)
    assert (said.first.top_k, said.residual.top_k) == (50, 7)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["model_type"], "qwen3", "model_type 'qwen3' is not served; valid: 'qwen3_tts'"),
        (["tokenizer_type"], "qwen3_tts_tokenizer_25hz", "valid: 'qwen3_tts_tokenizer_12hz'"),
        (["tts_model_type"], "song", "valid: 'custom_voice', 'voice_design', 'base'"),
        (["talker_config", "hidden_size"], "64", "talker_config: hidden_size must be int"),
        (["talker_config", "hidden_size"], None, "talker_config: hidden_size is missing"),
        (["talker_config", "hidden_act"], "gelu", "valid: 'silu'"),
        (["talker_config", "attention_bias"], True, "attention_bias true is not served"),
        (["talker_config", "rope_scaling"], {"rope_type": "yarn"}, "valid: 'default'"),
        (["talker_config", "vocab_size"], 3072, "vocab_size must be code_predictor_config"),
        (["talker_config", "codec_eos_token_id"], 3, "is no control code"),
        (["talker_config", "spk_id"], {}, "names no voice"),
        (["talker_config", "spk_is_dialect", "dylan"], "martian", "unknown dialect 'martian'"),
        (["talker_config"], [], "must be an object"),
    ],
)
def test_what_cannot_be_served_is_rejected(
    tmp_path: Path, path: list[str], value: Any, message: str
) -> None:
    raw: dict[str, Any] = json.loads(json.dumps(model_config(TINY_SMALL, "custom_voice")))
    place = raw
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path, raw))


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_config(tmp_path)
