"""Random checkpoints have the published layout, in both forms."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_tensors
from cantata_models.qwen3_asr.encoder import Qwen3AsrEncoder
from cantata_models.qwen3_asr.random_checkpoint import write_checkpoint


def test_names_are_the_publisher_s(tmp_path: Path) -> None:
    names = {name for name, _ in read_tensors(write_checkpoint(tmp_path, 1))}
    assert {name.split(".")[0] for name in names} == {"thinker"}
    assert {
        "thinker.lm_head.weight",
        "thinker.model.embed_tokens.weight",
        "thinker.model.norm.weight",
        "thinker.model.layers.2.self_attn.q_norm.weight",
        "thinker.audio_tower.conv2d3.weight",
        "thinker.audio_tower.conv_out.weight",
        "thinker.audio_tower.layers.1.self_attn.out_proj.bias",
        "thinker.audio_tower.ln_post.weight",
        "thinker.audio_tower.proj2.bias",
    } <= names


def test_both_forms_hold_the_same_weights(tmp_path: Path) -> None:
    one, other = (
        dict(read_tensors(write_checkpoint(tmp_path / str(form), 1, is_published=form)))
        for form in (True, False)
    )
    assert one.keys().isdisjoint(other)
    weights = [sorted(t.numpy().tobytes() for t in form.values()) for form in (one, other)]
    assert weights[0] == weights[1]


def test_a_tied_head_is_in_no_file(tmp_path: Path) -> None:
    names = [name for name, _ in read_tensors(write_checkpoint(tmp_path, 1, is_tied=True))]
    assert not [name for name in names if "lm_head" in name]


def test_an_encoder_without_its_weights_is_named(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = write_checkpoint(tmp_path, 1)
    tensors = load_file(folder / "model.safetensors")
    del tensors["thinker.audio_tower.layers.0.fc1.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ConfigError, match=r"thinker\.audio_tower\.\* do not fit"):
        Qwen3AsrEncoder(folder, torch.device("cpu"))
