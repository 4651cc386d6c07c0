"""Published configurations are read as published; others are refused with what is valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cantata.contract.data.errors import ConfigError
from cantata_layers.omni.preprocessor_config import load_preprocessor_config
from cantata_models.qwen3_omni.config import load_config, load_speech_config
from cantata_models.qwen3_omni.random_checkpoint_config import (
    GENERATION_CONFIG,
    PREPROCESSOR_CONFIG,
    TINY,
    model_config,
)


def write(folder: Path, config: Any, generation: Any = None) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder


def test_instruct(tmp_path: Path) -> None:
    config, speech = load_speech_config(write(tmp_path, model_config(TINY), GENERATION_CONFIG))
    assert list(speech.talker.speakers) == ["chelsie", "ethan", "aiden"]
    assert speech.talker.backbone.experts.renormalize
    assert speech.code2wav.samples_per_frame == 1920
    assert speech.sampling.first.temperature == 0.9
    assert (speech.sampling.residual.temperature, speech.sampling.residual.top_p) == (1.0, 0.8)
    assert config.sampling.settings.top_k == 20
    assert config.text.roles["user"] == config.text.user


def test_without_generation_config_the_reference_s_settings_hold(tmp_path: Path) -> None:
    config, speech = load_speech_config(write(tmp_path, model_config(TINY)))
    assert (speech.sampling.first.top_k, speech.sampling.repetition_penalty) == (50, 1.05)
    assert speech.sampling.max_frames == 4096
    assert config.sampling.settings.temperature == 0.0


def test_thinking_and_captioner_have_no_talker(tmp_path: Path) -> None:
    folder = write(tmp_path, model_config(TINY, speaks=False))
    assert load_config(folder).speech is None
    with pytest.raises(ConfigError, match="enable_audio_output is false"):
        load_speech_config(folder)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ["model_type"],
            "qwen2_5_omni",
            "'qwen2_5_omni' is not served; valid: 'qwen3_omni",
        ),
        (["tts_pad_token_id"], None, "tts_pad_token_id is missing"),
        (["thinker_config", "audio_token_id"], "7", "audio_token_id must be int, not '7'"),
        (["thinker_config", "audio_config", "n_window"], 100, "n_window 100 is not served"),
        (
            ["thinker_config", "vision_config", "patch_size"],
            0,
            "patch_size must be at least 1",
        ),
        (["thinker_config", "text_config", "hidden_size"], 96, "64 is not the thinker's"),
        (["talker_config"], [], "talker_config must be an object"),
        (["talker_config", "accept_hidden_layer"], 5, "must be 0 to 4, not 5"),
        (["talker_config", "speaker_id"], {}, "speaker_id names no voice"),
        (["talker_config", "speaker_id", "ethan"], "x", "speaker_id: ethan must be int"),
        (["talker_config", "codec_eos_token_id"], 3, "3 is no control code"),
        (["talker_config", "num_code_groups"], 8, "num_code_groups 8 must be"),
        (["talker_config", "text_config", "num_experts_per_tok"], 5, r"1 to num_experts \(4\)"),
        (["talker_config", "text_config", "mlp_only_layers"], [0], "layers without experts"),
        (["talker_config", "text_config", "decoder_sparse_step"], 2, "layers without experts"),
        (
            ["talker_config", "text_config", "attention_bias"],
            True,
            "attention_bias true is not",
        ),
        (
            ["talker_config", "text_config", "rope_scaling", "mrope_section"],
            [8, 8],
            r"three numbers with the sum 16 \(half of head_dim\), not \[8, 8\]",
        ),
        (
            ["talker_config", "text_config", "rope_scaling", "interleaved"],
            False,
            "interleaved must be true",
        ),
        (
            ["talker_config", "code_predictor_config", "hidden_size"],
            32,
            "hidden_size 32 is not text_config.hidden_size 64",
        ),
        (["talker_config", "code_predictor_config", "vocab_size"], 65, "must be .* at least"),
        (["code2wav_config", "num_quantizers"], 8, "code2wav takes 8 below 64"),
        (["code2wav_config", "upsample_rates"], [8, 5, 4], "make 8000 samples a second"),
        (
            ["code2wav_config", "hidden_act"],
            "gelu",
            "hidden_act 'gelu' is not served; valid",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(
    tmp_path: Path, path: list[str], value: Any, message: str
) -> None:
    config: Any = json.loads(json.dumps(model_config(TINY)))
    place = config
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path, config))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sampling_rate", 24_000, "sampling_rate 24000 is not served; valid: 16000"),
        ("hop_length", None, "hop_length is missing"),
        ("min_pixels", 1 << 30, "min_pixels and max_pixels contradict"),
        ("image_mean", [0.5], "image_mean must be three numbers"),
        ("image_std", ["0.5"] * 3, "image_std must be a list of numbers"),
    ],
)
def test_other_features_are_refused(tmp_path: Path, key: str, value: Any, message: str) -> None:
    config = {**PREPROCESSOR_CONFIG, key: value}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=message):
        load_preprocessor_config(tmp_path)
