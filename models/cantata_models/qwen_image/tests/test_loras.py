"""LoRA files in every published spelling change the same weights; others are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config import TransformerConfig, load_config
from cantata_layers.qwen_image.defaults import LoraFile, lora_files
from cantata_layers.qwen_image.lora import Fusion, layer_names, read_lora
from cantata_layers.qwen_image.transformer.load import DenoiserPlacement, load_denoiser
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.drawing import CPU
from cantata_models.qwen_image.tests.parity.loras import LAYERS, LORAS, Lora, write_lora

PLAIN = replace(LORAS["peft"], prefix="", alpha_tensors=True)
SPELLINGS = {
    "diffusers": replace(PLAIN, prefix="transformer."),
    "comfy": replace(PLAIN, prefix="diffusion_model."),
    "peft": replace(PLAIN, prefix="base_model.model."),
    "kohya": replace(PLAIN, prefix="lora_unet_", flat=True, roles=("lora_down", "lora_up")),
    "plain": replace(PLAIN, roles=("lora_down", "lora_up")),
    "metadata": replace(PLAIN, alpha_tensors=False, prefix="transformer."),
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), VARIANTS["image"], 1)


@pytest.fixture(scope="module")
def config(checkpoint: Path) -> TransformerConfig:
    return load_config(checkpoint).transformer


@pytest.mark.parametrize("lora", SPELLINGS.values(), ids=list(SPELLINGS))
def test_spellings(lora: Lora, config: TransformerConfig, tmp_path: Path) -> None:
    expected = read_lora(write_lora(tmp_path, PLAIN), layer_names(config))
    found = read_lora(write_lora(tmp_path, lora), layer_names(config))
    assert found.keys() == expected.keys() == LAYERS.keys()
    for layer, change in found.items():
        assert change.scale == expected[layer].scale == lora.alpha / lora.rank
        assert torch.equal(change.down, expected[layer].down)
        assert torch.equal(change.up, expected[layer].up)


def test_without_an_alpha_the_change_is_as_large_as_its_matrices(
    config: TransformerConfig, tmp_path: Path
) -> None:
    path = write_lora(tmp_path, PLAIN)
    tensors = {name: t for name, t in load_file(path).items() if not name.endswith(".alpha")}
    save_file(tensors, path)
    assert {change.scale for change in read_lora(path, layer_names(config)).values()} == {1.0}


def test_files_add_up_with_their_strengths(config: TransformerConfig, tmp_path: Path) -> None:
    one = LoraFile(write_lora(tmp_path, replace(PLAIN, file="a.safetensors")), 0.5)
    two = LoraFile(write_lora(tmp_path, replace(PLAIN, file="b.safetensors", seed=9)), 2.0)
    weight = torch.zeros(LAYERS["img_in"][::-1])
    made = Fusion([one, two], config).fused("img_in.weight", weight, CPU)
    parts = [read_lora(file.path, layer_names(config))["img_in"] for file in (one, two)]
    expected = sum(
        file.strength * part.scale * part.up @ part.down
        for file, part in zip((one, two), parts, strict=True)
    )
    assert isinstance(expected, torch.Tensor)
    torch.testing.assert_close(made, expected)


def test_the_checkpoints_folder_says_which_and_how_strongly(tmp_path: Path) -> None:
    assert lora_files(tmp_path) == ()
    folder = tmp_path / "loras"
    folder.mkdir()
    for name in ("style@0.75.safetensors", "a.safetensors", "b@2.safetensors"):
        (folder / name).touch()
    strengths = [(file.path.name, file.strength) for file in lora_files(tmp_path)]
    assert strengths == [
        ("a.safetensors", 1.0),
        ("b@2.safetensors", 2.0),
        ("style@0.75.safetensors", 0.75),
    ]
    (folder / "notes.txt").touch()
    with pytest.raises(ConfigError, match=r"notes.txt"):
        lora_files(tmp_path)


Change = Callable[[dict[str, torch.Tensor]], object]
NAME = "transformer_blocks.0.attn.to_q"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update({f"{NAME}.dora_scale": torch.ones(1)}), "no LoRA tensor"),
        (lambda t: t.update({f"{NAME}.lokr_w1": torch.ones(1)}), "no LoRA tensor"),
        (lambda t: t.update({"other.lora_A.weight": torch.ones(2, 2)}), "no LoRA tensor"),
        (lambda t: t.pop(f"{NAME}.lora_B.weight"), "down and up together"),
        (
            lambda t: t.update({f"{NAME}.lora_A.weight": torch.ones(3, 32)}),
            "matrices",
        ),
        (lambda t: t.clear(), "holds no tensors"),
    ],
)
def test_other_files_are_refused(
    change: Change, message: str, config: TransformerConfig, tmp_path: Path
) -> None:
    path = write_lora(tmp_path, PLAIN)
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    with pytest.raises(ConfigError, match=message):
        read_lora(path, layer_names(config))


def test_a_file_of_another_width_is_refused(
    checkpoint: Path, config: TransformerConfig, tmp_path: Path
) -> None:
    path = write_lora(tmp_path, PLAIN)
    tensors = load_file(path)
    tensors[f"{NAME}.lora_A.weight"] = torch.ones(4, 99)
    save_file(tensors, path)
    fusion = Fusion([LoraFile(path)], config)
    placement = DenoiserPlacement(CPU, torch.float32, CPU)
    with pytest.raises(ConfigError, match=r"changes \[32, 99\]"):
        load_denoiser(checkpoint, config, placement, fusion)


def test_a_damaged_file_is_refused(config: TransformerConfig, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"no tensors")
    with pytest.raises(ConfigError, match="not a readable safetensors file"):
        read_lora(path, layer_names(config))
