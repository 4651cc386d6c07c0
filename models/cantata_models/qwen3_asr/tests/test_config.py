"""Checkpoints that cannot be served are refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_asr.config import find_special_tokens, load_config
from cantata_models.qwen3_asr.random_checkpoint import write_checkpoint

Change = Callable[[dict[str, Any]], object]


def change(folder: Path, edit: Change, name: str = "config.json") -> None:
    path = folder / name
    values = json.loads(path.read_text())
    edit(values)
    path.write_text(json.dumps(values))


@pytest.mark.parametrize("is_published", [True, False])
def test_both_forms_say_the_same(is_published: bool, tmp_path: Path) -> None:
    config = load_config(write_checkpoint(tmp_path, 1, is_published=is_published))
    other = load_config(write_checkpoint(tmp_path / "other", 1, is_published=not is_published))
    assert config.stack == other.stack
    assert config.encoder == other.encoder
    assert config.longest_s == other.longest_s == 30.0
    assert config.names != other.names
    assert {len(config.languages), len(other.languages)} == {6, 30}


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("is_published", [True, False])
def test_the_head_may_be_the_table_of_embeddings(
    is_tied: bool, is_published: bool, tmp_path: Path
) -> None:
    folder = write_checkpoint(tmp_path, 1, is_tied=is_tied, is_published=is_published)
    assert load_config(folder).is_tied == is_tied


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda v: v["thinker_config"].update(model_type="qwen3_forced_aligner"), "aligns"),
        (lambda v: v["thinker_config"]["audio_config"].update(n_window=100), "n_window"),
        (lambda v: v["thinker_config"]["audio_config"].update(n_window_infer=850), "n_window"),
        (lambda v: v["thinker_config"]["audio_config"].update(output_dim=32), "output_dim"),
        (lambda v: v["thinker_config"]["audio_config"].update(scale_embedding=True), "scale"),
        (lambda v: v["thinker_config"]["audio_config"].update(activation_function="relu"), "relu"),
        (lambda v: v["thinker_config"].pop("text_config"), "hidden_size is missing"),
        (lambda v: v["thinker_config"].pop("audio_token_id"), "audio_token_id is missing"),
        (lambda v: v.update(support_languages=["Klingon"]), "Klingon"),
    ],
)
def test_a_config_that_is_not_served_is_named(edit: Change, says: str, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, 1)
    change(folder, edit)
    with pytest.raises(ConfigError, match=says):
        load_config(folder)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda v: v.update(feature_size=80), "feature_size 80"),
        (lambda v: v.update(sampling_rate=8000), "sampling_rate 8000"),
        (lambda v: v.update(hop_length=320), "hop_length 320"),
    ],
)
def test_other_features_are_named(edit: Change, says: str, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, 1)
    change(folder, edit, "preprocessor_config.json")
    with pytest.raises(ConfigError, match=says):
        load_config(folder)


def test_another_tokenizer_is_named(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, 1)
    tokenizer = load_qwen_tokenizer(folder)
    change(folder, lambda v: v["thinker_config"].update(audio_token_id=1))
    with pytest.raises(ConfigError, match="audio_token_id is 1"):
        find_special_tokens(tokenizer, load_config(folder))
    change(
        folder,
        lambda v: v["added_tokens_decoder"].pop(str(tokenizer.token_to_id("<asr_text>"))),
        "tokenizer_config.json",
    )
    with pytest.raises(ConfigError, match="no <asr_text>"):
        find_special_tokens(load_qwen_tokenizer(folder), load_config(folder))
