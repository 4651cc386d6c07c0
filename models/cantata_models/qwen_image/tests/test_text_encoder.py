"""The text encoder: both layouts of its weights, its tables, and what is computed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2_5_VLConfig

from cantata.contract.data.chunks import Rows
from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json
from cantata_layers.qwen_image.stages.encode import PromptEncoder
from cantata_layers.qwen_image.stages.pipeline import EncodeInput
from cantata_layers.qwen_image.text.encoder import TextEncoder, empty_network
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.drawing import CPU
from cantata_models.qwen_image.tests.parity.scenarios import picture
from threads import threads

TOKENS = np.arange(40, 90, dtype=np.int32)
OTHER = TOKENS[::-1].copy()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("checkpoint"), VARIANTS["edit"], 1)


def test_weights_load_in_both_published_layouts(checkpoint: Path, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, VARIANTS["edit"], 1)
    path = folder / "text_encoder" / "model.safetensors"
    renamed = {
        f"model.{name}"
        if name.startswith("visual.")
        else name.replace("model.", "model.language_model.", 1): tensor
        for name, tensor in load_file(path).items()
        if name != "lm_head.weight"
    }
    assert any(name.startswith("model.visual.") for name in renamed)
    save_file(renamed, path)
    for sees in (False, True):
        made = [
            TextEncoder(where, CPU, sees=sees).embed(TOKENS, 0) for where in (checkpoint, folder)
        ]
        assert torch.equal(*made)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, VARIANTS["edit"], 1)
    path = folder / "text_encoder" / "model.safetensors"
    tensors = load_file(path)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, path)
    with pytest.raises(ConfigError, match=r"layers\.1\.mlp\.up_proj"):
        TextEncoder(folder, CPU, sees=False)


def test_tables_of_frequencies_are_exact_whatever_the_weights_dtype(checkpoint: Path) -> None:
    kind: Any = Qwen2_5_VLConfig
    config = kind(**read_json(checkpoint / "text_encoder" / "config.json").values)
    rounded, exact = (empty_network(config, True, t) for t in (torch.bfloat16, torch.float32))
    tables = dict(exact.named_buffers())
    assert len(tables) >= 2
    for name, table in rounded.named_buffers():
        assert table.dtype == torch.float32
        assert torch.equal(table, tables[name])
    assert {weight.dtype for weight in rounded.parameters()} == {torch.bfloat16}


def test_an_embedding_does_not_depend_on_later_tokens(checkpoint: Path) -> None:
    """So a prompt may be cut before it is embedded."""
    encoder = TextEncoder(checkpoint, CPU, sees=False)
    whole, cut = encoder.embed(TOKENS, 4), encoder.embed(TOKENS[:30], 4)
    torch.testing.assert_close(whole[:26], cut, rtol=0, atol=1e-5)


def test_equal_prompts_are_embedded_once(checkpoint: Path) -> None:
    encoder = PromptEncoder(checkpoint, CPU)
    embed = TextEncoder.embed
    with patch.object(TextEncoder, "embed", autospec=True, side_effect=embed) as called:
        first, second = encoder.run([EncodeInput(TOKENS, OTHER), EncodeInput(TOKENS[:40], OTHER)])
        (third,) = encoder.run([EncodeInput(TOKENS, None)])
    assert called.call_count == 3
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert isinstance(third, dict)
    for rows in (*first.values(), *second.values(), *third.values()):
        assert isinstance(rows, Rows)
    np.testing.assert_array_equal(first["negative"].values, second["negative"].values)
    np.testing.assert_array_equal(first["condition"].values, third["condition"].values)
    assert third["negative"].values.shape == (0, 48)


def test_keys_tell_inputs_apart(checkpoint: Path) -> None:
    encoder = PromptEncoder(checkpoint, CPU)
    first = EncodeInput(TOKENS, OTHER, (picture(64, 32, 1),))
    others = [
        replace(first, prompt=OTHER),
        replace(first, negative=TOKENS),
        replace(first, negative=None),
        replace(first, pictures=()),
        replace(first, pictures=(picture(64, 32, 2),)),
        replace(first, pictures=(first.pictures[0].reshape(64, 32, 3),)),
    ]
    assert encoder.key(first) == encoder.key(replace(first))
    assert len({encoder.key(inputs) for inputs in (first, *others)}) == 1 + len(others)
