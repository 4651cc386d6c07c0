"""Checkpoints that cannot be served are refused with the reason; every published form is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata_models.kokoro.checkpoint import find_weights, load_network
from cantata_models.kokoro.config import load_config
from cantata_models.kokoro.random_checkpoint import TINY
from cantata_models.kokoro.tests.parity.scenarios import PLAIN, KokoroCheckpointKey

CPU = torch.device("cpu")
WEIGHTS = "kokoro-v1_0.pth"
Parts = dict[str, dict[str, torch.Tensor]]


@pytest.fixture
def folder(checkpoints: dict[KokoroCheckpointKey, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoints[PLAIN], tmp_path / "copy"))


def load(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_network(folder, load_config(folder), CPU).named_parameters())


def change(folder: Path, edit: Callable[[Parts], None]) -> None:
    parts = torch.load(folder / WEIGHTS, weights_only=True)
    edit(parts)
    torch.save(parts, folder / WEIGHTS)


def test_newer_names_of_normed_weights_and_folded_ones(folder: Path) -> None:
    usual = load(folder)

    def rename(parts: Parts) -> None:
        for tensors in parts.values():
            for name in [one for one in tensors if one.endswith("weight_g")]:
                base = name.removesuffix("weight_g")
                length, direction = tensors.pop(name), tensors.pop(f"{base}weight_v")
                if "resblocks" in base:
                    norms = direction.flatten(1).norm(dim=1).view(length.shape)
                    tensors[f"{base}weight"] = direction * (length / norms)
                else:
                    tensors[f"{base}parametrizations.weight.original0"] = length
                    tensors[f"{base}parametrizations.weight.original1"] = direction

    change(folder, rename)
    again = load(folder)
    assert usual.keys() == again.keys()
    assert all(torch.equal(usual[name], again[name]) for name in usual)


def test_what_no_network_uses_may_be_there(folder: Path) -> None:
    usual = load(folder)

    def add(parts: Parts) -> None:
        parts["bert"]["module.pooler.weight"] = torch.zeros(2, 2)
        parts["bert"]["module.embeddings.position_ids"] = torch.arange(512)[None]
        name = "module.encode.norm1.norm.weight"
        parts["decoder"][name] = torch.ones(usual["decoder.encode.norm1.norm.weight"].shape)

    change(folder, add)
    assert all(torch.equal(usual[name], tensor) for name, tensor in load(folder).items())


def _drop(part: str, name: str) -> Callable[[Parts], None]:
    def drop(parts: Parts) -> None:
        del parts[part][name]

    return drop


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_drop("predictor", "module.F0_proj.bias"), r"lacks predictor\.F0_proj\.bias"),
        (_drop("decoder", "module.encode.conv1.weight_v"), r"encode\.conv1\.weight_v is missing"),
        (_drop("decoder", "module.encode.conv1.weight_g"), r"has unknown decoder.*conv1\.weight_v"),
        (
            lambda parts: parts["bert"].update({"module.lora": torch.zeros(1)}),
            r"has unknown bert\.lora",
        ),
        (
            lambda parts: parts["bert_encoder"].update({"module.bias": torch.zeros(7)}),
            r"has misshapen bert_encoder\.bias \[7\], not \[32\]",
        ),
        (lambda parts: parts.update(more={}), "must hold the parts bert, "),
        (
            lambda parts: parts["text_encoder"].clear(),
            r"lacks text_encoder\.embedding\.weight, .* and \d+ more",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(
    folder: Path, edit: Callable[[Parts], None], message: str
) -> None:
    change(folder, edit)
    with pytest.raises(ConfigError, match=message) as refusal:
        load(folder)
    assert WEIGHTS in str(refusal.value)


def test_which_file_is_read(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "own.pth")
    assert find_weights(folder).name == "own.pth"
    shutil.copy(folder / "own.pth", folder / "kokoro-v1_1-zh.pth")
    assert find_weights(folder).name == "kokoro-v1_1-zh.pth"
    (folder / WEIGHTS).write_bytes(b"no pickle")
    with pytest.raises(ConfigError, match=r"has kokoro-v1_0\.pth, kokoro-v1_1-zh\.pth; it needs"):
        load(folder)
    (folder / "kokoro-v1_1-zh.pth").unlink()
    with pytest.raises(ConfigError, match="not a readable pickle"):
        load(folder)
    for path in folder.glob("*.pth"):
        path.unlink()
    with pytest.raises(ConfigError, match=r"has no \*\.pth; it needs"):
        load(folder)


@pytest.mark.parametrize(
    ("section", "changed", "message"),
    [
        (None, {"n_token": None}, "n_token is missing"),
        (None, {"hidden_dim": 31}, "hidden_dim must be even"),
        (None, {"text_encoder_kernel_size": 4}, "must be odd, not 4"),
        (None, {"vocab": {}}, "vocab is missing"),
        (None, {"vocab": {"a": 178}}, "'a' must have an id of 1 to 177, not 178"),
        ("plbert", {"num_attention_heads": 5}, "multiple of num_attention_heads"),
        ("plbert", {"max_position_embeddings": 2}, "must be at least 3"),
        ("istftnet", {"upsample_rates": [10]}, "the same length"),
        ("istftnet", {"upsample_rates": []}, "upsample_rates"),
        ("istftnet", {"upsample_kernel_sizes": [20, 11]}, "by even numbers"),
        ("istftnet", {"resblock_kernel_sizes": [3]}, "the same length"),
        ("istftnet", {"resblock_kernel_sizes": [3, 4]}, "must be odd"),
        ("istftnet", {"resblock_dilation_sizes": [[1], [1, 3]]}, "three numbers"),
        ("istftnet", {"upsample_initial_channel": 30}, "multiple of 4"),
        ("istftnet", {"gen_istft_hop_size": 11}, "at most half"),
    ],
)
def test_a_configuration_that_cannot_be_served(
    tmp_path: Path, section: str | None, changed: dict[str, Any], message: str
) -> None:
    values = json.loads(json.dumps(TINY))
    (values if section is None else values[section]).update(changed)
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(ConfigError, match=message):
        load_config(tmp_path)


def test_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_config(tmp_path)
