"""Folders as published are read, and what is wrong in one is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from cantata.config import ArDeployment
from cantata.config.plugins import locate
from cantata.contract.data.errors import ConfigError
from cantata.stages.ar import build_stage
from cantata_models.pocket_tts.codec import MimiDecoder
from cantata_models.pocket_tts.config import FlowKind, find_voices, load_config
from cantata_models.pocket_tts.encoder import MimiEncoder
from cantata_models.pocket_tts.flow_head import FlowHead, truncate_normal
from cantata_models.pocket_tts.plugin import PIPELINE, TALKER
from cantata_models.pocket_tts.random_checkpoint import (
    CONFIG_FILE,
    PUBLISHED,
    SHAPES,
    TINY,
    write_checkpoint,
)
from cantata_models.pocket_tts.request_builder import load_builder
from cantata_models.pocket_tts.tests.parity.scenarios import write
from cantata_models.pocket_tts.voices import read_voice

CPU = torch.device("cpu")
WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path, TINY, seed=3)


def change(folder: Path, *keys: str, value: Any) -> None:
    path = folder / CONFIG_FILE
    config = part = yaml.safe_load(path.read_text())
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    path.write_text(yaml.safe_dump(config))


def test_a_folder_without_json_is_found_by_its_yaml(folder: Path) -> None:
    (folder / "deploy.yaml").write_text("async_chunk: true\n")
    assert locate(str(folder)).plugin.name == "pocket_tts"
    (folder / CONFIG_FILE).unlink()
    with pytest.raises(ConfigError, match=r"no readable config\.json"):
        locate(str(folder))


def test_files_stay_where_the_hub_has_them(folder: Path) -> None:
    at = folder / "languages" / "english"
    at.mkdir(parents=True)
    for name in (WEIGHTS, "tokenizer.json", "embeddings"):
        shutil.move(folder / name, at / name)
    assert load_config(folder).weights == at / WEIGHTS
    assert [voice.id for voice in load_builder(folder).voices] == ["alba", "marius"]
    MimiDecoder(folder, CPU)


def test_the_published_sizes_are_those_of_the_report(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).write_text(yaml.safe_dump(PUBLISHED.config))
    for name in (WEIGHTS, "tokenizer.json"):
        (tmp_path / name).touch()
    config = load_config(tmp_path)
    assert (config.mimi.samples_per_frame, config.mimi.stride) == (1920, 16)
    assert (config.backbone.head_dim, config.backbone.inner) == (64, 4096)
    assert config.language == "en"


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("flow_lm", "transformer", "num_layers"), None, "num_layers is missing"),
        (("flow_lm", "transformer", "num_heads"), 3, "3 heads do not share 64"),
        (("flow_lm", "flow", "type"), "flow_matching", "valid: .*lsd.*drifting.*pointwise"),
        (("flow_lm", "lookup_table", "dim"), 32, "dim must be d_model, 64"),
        (("flow_lm", "lookup_table", "n_bins"), 401, "400 tokens; the configuration says 401"),
        (("flow_lm", "weights_path"), "x.safetensors", "as training leaves them"),
        (("weights_path",), "hf://a/b/other.safetensors", r"has no other\.safetensors"),
        (("mimi", "seanet", "pad_mode"), "replicate", "pad_mode must be 'constant'"),
        (("mimi", "frame_rate"), 13.0, "do not divide sample_rate"),
        (("mimi", "outer_dim"), 64, "must be 32"),
        (("mimi", "quantizer", "dimension"), 20, "multiple of 16"),
        (("mimi", "transformer", "input_dimension"), 64, "all widths must be 32"),
        (("replace_characters",), {"ab": "c"}, "'ab' is not a character"),
    ],
)
def test_a_wrong_field_is_named(
    folder: Path, keys: tuple[str, ...], value: Any, message: str
) -> None:
    change(folder, *keys, value=value)
    with pytest.raises(ConfigError, match=message):
        load_builder(folder)


def test_two_configurations_are_too_many(folder: Path) -> None:
    shutil.copy(folder / CONFIG_FILE, folder / "french.yaml")
    with pytest.raises(ConfigError, match="several configurations"):
        load_builder(folder)


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("mimi.decoder.model.0.conv.weight", lambda folder: MimiDecoder(folder, CPU)),
        ("mimi.encoder.model.0.conv.bias", lambda folder: MimiEncoder(folder, CPU)),
        ("flow_lm.speaker_proj_weight", lambda folder: MimiEncoder(folder, CPU)),
        ("flow_lm.emb_mean", lambda folder: MimiDecoder(folder, CPU)),
    ],
)
def test_a_weight_of_the_codec_that_does_not_fit_is_named(
    folder: Path, name: str, load: Callable[[Path], object]
) -> None:
    tensors = load_file(folder / WEIGHTS)
    whole = tensors.pop(name)
    save_file(tensors, folder / WEIGHTS)
    with pytest.raises(ConfigError, match=f"{name}' is missing|no tensor's name starts"):
        load(folder)
    save_file(tensors | {name: torch.cat([whole, whole])}, folder / WEIGHTS)
    with pytest.raises(ConfigError, match=f"{name}' must be"):
        load(folder)


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"flow_lm.extra": torch.ones(1)}, "no parameter extra"),
        ({"flow_lm.out_eos.weight": torch.ones(2, 64)}, r"out_eos\.weight of \[2, 64\]"),
        ({"flow_lm.bos_emb": None}, "lacks weights of bos_emb"),
    ],
)
def test_a_weight_of_the_talker_that_does_not_fit_is_named(
    folder: Path, changed: dict[str, torch.Tensor | None], message: str
) -> None:
    tensors: dict[str, torch.Tensor | None] = {**load_file(folder / WEIGHTS), **changed}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(kept, folder / WEIGHTS)
    with pytest.raises(ConfigError, match=message):
        build_stage(PIPELINE.stage(TALKER), folder, ArDeployment(slots=1, max_model_len=64))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"transformer.layers.1.self_attn/cache": None}, r"of layers it has \[0\]"),
        (
            {"transformer.layers.0.self_attn/cache": torch.ones(2, 1, 12, 1, 32)},
            r"must be \[2, 1, positions, 2, 32\], not \[2, 1, 12, 1, 32\]",
        ),
        ({"transformer.layers.0.self_attn/offset": torch.tensor([13])}, "12 positions, not 13"),
        ({"transformer.layers.0.self_attn/offset": torch.tensor([5])}, "different lengths"),
        ({"transformer.layers.0.self_attn/offset": torch.tensor([12])}, "not finite"),
        ({"audio_prompt": torch.ones(1, 3, 32)}, r"\[1, positions, 64\], not \[1, 3, 32\]"),
    ],
)
def test_a_voice_that_does_not_fit_is_named(
    folder: Path, changed: dict[str, torch.Tensor | None], message: str
) -> None:
    path = find_voices(folder)["alba"]
    tensors: dict[str, torch.Tensor | None] = {**load_file(path), **changed}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(kept, path)
    with pytest.raises(ConfigError, match=message):
        read_voice(path, load_config(folder).backbone)


def test_states_of_both_formats_are_read_alike(folder: Path) -> None:
    sizes, path = load_config(folder).backbone, find_voices(folder)["alba"]
    keys = read_voice(path, sizes).keys
    assert keys is not None
    assert keys.shape == (2, 2, 9, 64)
    older = {name: t for name, t in load_file(path).items() if name.endswith("cache")}
    ends = {f"{name.partition('/')[0]}/current_end": torch.zeros(9) for name in older}
    save_file(older | ends, path)
    again = read_voice(path, sizes).keys
    assert again is not None
    assert torch.equal(again, keys)


def test_a_pointwise_head_adds_the_noise_to_what_a_drifting_one_makes(tmp_path: Path) -> None:
    drifting = load_config(write("small", tmp_path))
    pointwise = load_config(write_checkpoint(tmp_path / "pointwise", SHAPES["pointwise"], 3))
    assert (drifting.flow, pointwise.flow) == (FlowKind.DRIFTING, FlowKind.POINTWISE)
    heads = FlowHead(drifting), FlowHead(pointwise)
    heads[1].load_state_dict(heads[0].state_dict())
    generator = torch.Generator().manual_seed(1)
    noise, hidden = (torch.randn(3, size, generator=generator) for size in (16, 24))
    with torch.inference_mode():
        made = [head(noise, hidden, (1, 1, 1)) for head in heads]
    assert torch.equal(made[1], noise + made[0])


def test_bounded_noise_keeps_its_rank_and_its_bounds() -> None:
    noise = torch.linspace(-4, 4, 101)[None].expand(3, -1)
    temperature, bound = torch.tensor([[0.25], [1.0], [0.0]]), torch.tensor([[0.0], [0.5], [0.5]])
    plain, squeezed, still = truncate_normal(noise, temperature, bound)
    assert torch.equal(plain, noise[0] / 2)
    assert squeezed.abs().max() <= 0.5
    assert (squeezed.diff() > 0).all()
    assert not still.any()
