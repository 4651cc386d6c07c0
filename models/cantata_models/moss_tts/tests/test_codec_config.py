"""Published tokenizers are read as published; others are refused with what is valid."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from cantata.contract.data.errors import ConfigError
from cantata_models.moss_tts.random_checkpoint_codec import (
    LOCAL,
    NANO,
    TINY_NANO,
    MossCodecShape,
    codec_config,
    codec_tensors,
    write_config,
)
from cantata_models.moss_tts.tokenizer_config import (
    MossTransformerConfig,
    PatchConfig,
    load_tokenizer_config,
    tokenizer_folder,
)


@pytest.mark.parametrize(
    ("shape", "used", "decoder"),
    [
        (
            LOCAL,
            12,
            "1x125x32 *2 2x250x12 *2 4x400x12 *2 8x400x12 *2 16x400x12 *2 32x400x12 *240",
        ),
        (NANO, 16, "*4 4x500x4 *2 8x800x2 *2 16x1200x2 *2 32x1600x4 *240"),
    ],
    ids=["local", "nano"],
)
def test_the_published_tokenizers(
    shape: MossCodecShape, used: int, decoder: str, tmp_path: Path
) -> None:
    write_config(tmp_path, shape)
    config = load_tokenizer_config(tmp_path, used)
    assert (config.sample_rate, config.samples_per_frame) == (48_000, 3_840)
    assert (config.quantizer.latent, config.quantizer.codebooks) == (768, used)
    words = [
        f"*{module.size}"
        if isinstance(module, PatchConfig)
        else f"{module.frame_positions}x{module.window}x{module.layers}"
        for module in config.decoder
    ]
    assert " ".join(words) == decoder
    stages = [module for module in config.decoder if isinstance(module, MossTransformerConfig)]
    assert {stage.head_dim for stage in stages} == {64}
    mirrored = [(stage.outputs, stage.inputs, stage.window) for stage in reversed(stages)]
    encoder = [module for module in config.encoder if isinstance(module, MossTransformerConfig)]
    assert [(stage.inputs, stage.outputs, stage.window) for stage in encoder] == mirrored


@pytest.mark.parametrize(
    ("shape", "tensors", "millions"),
    [(LOCAL, 2_094, 2_124), (NANO, 374, 22)],
    ids=["local", "nano"],
)
def test_random_tokenizers_are_as_large_as_published(
    shape: MossCodecShape, tensors: int, millions: int
) -> None:
    specs = list(codec_tensors(codec_config(shape)))
    assert len({spec.name for spec in specs}) == len(specs) == tensors
    assert round(sum(math.prod(spec.shape) for spec in specs) / 1e6) == millions


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["model_type"], "speech_tokenizer", "valid: 'moss-audio-tokenizer'"),
        (["number_channels"], 1, "number_channels 1 is not served; valid: 2"),
        (["enable_channel_interleave"], False, "valid: true"),
        (["sampling_rate"], None, "sampling_rate is missing"),
        (["downsample_rate"], 0, "downsample_rate must be at least 1, not 0"),
        (["quantizer_kwargs", "quantizer_type"], "rvq", "valid: 'rlfq', 'random_prefix_rlfq'"),
        (["quantizer_kwargs", "num_quantizers"], 3, "is 3, but the model uses 4 codebooks"),
        (["quantizer_kwargs", "output_dim"], 24, "output_dim 24 is not served; valid: 48"),
        (["decoder_kwargs"], None, "decoder_kwargs must be a list of objects"),
        (["decoder_kwargs"], [4], "decoder_kwargs must be a list of objects"),
        (["decoder_kwargs", 0, "patch_size"], 5, r"decoder_kwargs\[0\]: patch_size 5 does not"),
        (["decoder_kwargs", 0, "patch_size"], 2, "input_dimension 12 is not served; valid: 24"),
        (["decoder_kwargs", 8, "patch_size"], 120, "ends with 3840 positions of 2 channels"),
        (["encoder_kwargs", 0, "patch_size"], 7, "does not divide 7680 positions"),
        (["encoder_kwargs", 1, "module_type"], "Conv", "valid: 'PatchedPretransform', 'Trans"),
        (["encoder_kwargs", 1, "causal"], False, "causal false is not served; valid: true"),
        (["encoder_kwargs", 1, "gating"], "silu", "gating 'silu' is not served; valid: 'none'"),
        (["encoder_kwargs", 1, "norm"], "rms_norm", "valid: 'layer_norm'"),
        (["encoder_kwargs", 1, "positional_embedding"], "sin", "valid: 'rope'"),
        (["encoder_kwargs", 1, "layer_scale"], None, "layer_scale is missing"),
        (["encoder_kwargs", 1, "num_heads"], 3, "d_model 32 does not split into 3 heads"),
        (["encoder_kwargs", 1, "context_duration"], 0.001, "0.001 holds no position"),
    ],
)
def test_what_cannot_be_served_is_refused(
    tmp_path: Path, path: list[str | int], value: Any, message: str
) -> None:
    config: Any = json.loads(json.dumps(codec_config(TINY_NANO)))
    place = config
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=message):
        load_tokenizer_config(tmp_path, TINY_NANO.codebooks)


@pytest.mark.parametrize(
    "key", ["audio_tokenizer_name_or_path", "audio_tokenizer_pretrained_name_or_path"]
)
def test_the_tokenizer_is_beside_the_model_or_inside(tmp_path: Path, key: str) -> None:
    (model := tmp_path / "model").mkdir()
    (model / "config.json").write_text(json.dumps({key: "someone/Tokenizer-2"}))
    beside, inside = tmp_path / "Tokenizer-2", model / "audio_tokenizer"
    with pytest.raises(ConfigError, match=f"'someone/Tokenizer-2' is missing.*{beside}.*{inside}"):
        tokenizer_folder(model)
    for folder in (inside, beside):  # what lies beside the model comes first
        folder.mkdir()
        write_config(folder, TINY_NANO)
        assert tokenizer_folder(model) == folder


def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="names no audio tokenizer"):
        tokenizer_folder(tmp_path)
