"""Published configurations load; what cannot be used is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata_models.qwen25_omni.config import Qwen25OmniConfig, load_config
from cantata_models.qwen25_omni.random_checkpoint import PUBLISHED, TINY, model_config
from cantata_models.qwen25_omni.speakers import FILE, load_speakers

Place = tuple[str, ...]


def write(folder: Path, config: Mapping[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def load(folder: Path, config: Mapping[str, Any]) -> Qwen25OmniConfig:
    return load_config(write(folder, config))


def test_the_published_7b(tmp_path: Path) -> None:
    config = load(tmp_path, model_config(PUBLISHED))
    stack = config.talker.stack
    assert (stack.hidden_size, stack.layers, stack.heads, stack.kv_heads) == (896, 24, 12, 4)
    assert (stack.head_dim, stack.vocab_size, config.talker.embedding_size) == (128, 8448, 3584)
    codec = config.talker.codec
    assert (codec.pad, codec.start, codec.end, codec.mask) == (8292, 8293, 8294, 8296)
    assert (config.talker.text.pad, config.talker.text.end) == (151859, 151861)
    assert (config.dit.hidden_size, config.dit.layers, config.dit.heads) == (1024, 22, 16)
    assert (config.dit.look_ahead, config.dit.look_backward) == ((10,), (0, 20))
    assert (config.codes, config.dit.block_codes, config.vocoder.hop) == (8194, 12, 240)


def test_older_names_of_the_transformer_s_sizes(tmp_path: Path) -> None:
    published = model_config(PUBLISHED)
    sizes = {"dim": 512, "depth": 12, "heads": 8, "look_backward_layers": [0, 11]}
    published["token2wav_config"]["dit_config"] = sizes
    dit = load(tmp_path, published).dit
    assert (dit.hidden_size, dit.layers, dit.heads) == (512, 12, 8)


DIT, VOCODER = ("token2wav_config", "dit_config"), ("token2wav_config", "bigvgan_config")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("model_type",), "qwen2_vl", "model_type 'qwen2_vl' is not served; valid: 'qwen2_5_omni'"),
        (("enable_audio_output",), False, "the checkpoint is mute"),
        (("talker_config", "embedding_size"), 96, "96 must be the thinker's hidden_size 128"),
        (("talker_config", "embedding_size"), None, "embedding_size is missing"),
        (
            ("talker_config", "tts_codec_end_token_id"),
            3,
            "end_token_id 3 must be in 64",
        ),
        (("talker_config", "tts_codec_pad_token_id"), 68, r"must be in 64\.\.67"),
        (("talker_config", "tts_text_pad_token_id"), 999, "999 must be below the thinker's"),
        (
            ("talker_config", "rope_scaling"),
            {"mrope_section": [6, 5]},
            r"mrope_section \[6, 5\] must be three numbers whose sum is half of head_dim, 16",
        ),
        (("talker_config", "hidden_act"), "gelu", "hidden_act 'gelu' is not served; valid: 'silu'"),
        ((*DIT, "block_size"), 23, "block_size 23 must be a multiple of repeats 2"),
        ((*DIT, "look_ahead_layers"), [4], r"look_ahead_layers has \[4\]; the layers are 0\.\.3"),
        ((*DIT, "enc_channels"), [16], "must have the same length"),
        ((*DIT, "mel_dim"), 100, "dit_config.mel_dim 100 and bigvgan_config.mel_dim 80"),
        ((*VOCODER, "upsample_rates"), [5, 3], "must exceed upsample_rates"),
        ((*VOCODER, "upsample_kernel_sizes"), [12, 7, 4, 4, 4, 4], "by even numbers"),
        (
            (*VOCODER, "resblock_dilation_sizes"),
            [1, 3],
            r"sizes\[0\] must be a list, not 1",
        ),
        ((*VOCODER, "resblock_dilation_sizes"), [[1, 3, 5]], "must have the same length"),
        ((*VOCODER, "upsample_initial_channel"), 96, "96 cannot be halved 6 times"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, place: Place, value: Any, said: str) -> None:
    config = model_config(TINY)
    section = config
    for key in place[:-1]:
        section = section[key]
    section[place[-1]] = value
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, config)


def speaker(**changed: Any) -> dict[str, Any]:
    given = {"bos_token": 300, "cond": torch.ones(1, 192), "ref_mel": torch.ones(1, 30, 80)}
    return {key: value for key, value in (given | changed).items() if value is not None}


def test_speakers_keep_their_names_and_order(tmp_path: Path) -> None:
    config = load(tmp_path, model_config(TINY))
    half = torch.full((1, 192), 0.5, dtype=torch.bfloat16)
    torch.save({"Zoë": speaker(), "amy": speaker(bos_token=7, cond=half)}, tmp_path / FILE)
    speakers = load_speakers(tmp_path, config)
    assert list(speakers) == ["Zoë", "amy"]
    assert speakers["amy"].bos_token == 7
    assert torch.equal(speakers["amy"].vector, torch.full((192,), 0.5))
    assert speakers["amy"].mel.shape == (30, 80)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "not a readable file of speakers"),
        (b"no pickle", "not a readable file of speakers"),
        ({"Amy": print}, "not a readable file of speakers"),
        ([], "names no speaker"),
        ({"Amy": [1]}, "Amy: must be a dictionary, not list"),
        ({"Amy": speaker(bos_token=None)}, "Amy: bos_token must be a token below 320, not None"),
        ({"Amy": speaker(bos_token=320)}, "below 320, not 320"),
        ({"Amy": speaker(cond=None)}, r"cond must be a tensor \[1, 192\], not NoneType"),
        ({"Amy": speaker(cond=torch.ones(192))}, r"cond must be \[1, 192\], not \[192\]"),
        ({"Amy": speaker(ref_mel=torch.ones(1, 30, 128))}, r"must be \[1, T, 80\], not \[1, 30, 1"),
        ({"Amy": speaker(ref_mel=torch.ones(1, 4, 80))}, "more than 4 frames, not 4"),
        ({"Amy": speaker(cond=torch.full((1, 192), torch.nan))}, "cond has values that are not fi"),
    ],
)
def test_speakers_that_cannot_be_used(tmp_path: Path, content: Any, said: str) -> None:
    config = load(tmp_path, model_config(TINY))
    if isinstance(content, bytes):
        (tmp_path / FILE).write_bytes(content)
    elif content is not None:
        torch.save(content, tmp_path / FILE)
    with pytest.raises(ConfigError, match=said):
        load_speakers(tmp_path, config)
