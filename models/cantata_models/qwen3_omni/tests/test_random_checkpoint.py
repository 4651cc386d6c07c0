"""Random checkpoints have the published layout."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from cantata_layers.checkpoint import INDEX_FILE, read_tensors
from cantata_layers.json_fields import read_json
from cantata_models.qwen3_omni.random_checkpoint import checkpoint_tensors, write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import REDUCED, TINY, model_config


def test_shards_hold_what_the_index_says(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TINY, 1, torch.bfloat16)
    places = read_json(folder / INDEX_FILE).items("weight_map")
    tensors = dict(read_tensors(folder))
    assert places.keys() == tensors.keys()
    assert set(places.values()) == {p.name for p in folder.glob("*.safetensors")}
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    experts = [name for name in tensors if name.startswith("talker.model.layers.1.mlp.experts.")]
    assert len(experts) == 3 * TINY.talker.experts


def test_a_checkpoint_without_speech_has_one_part(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TINY, 1, speaks=False)
    assert {name.split(".")[0] for name, _ in read_tensors(folder)} == {"thinker"}


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    one, same, other = (
        dict(read_tensors(write_checkpoint(tmp_path / str(number), TINY, seed)))
        for number, seed in enumerate((1, 1, 2))
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)


def test_the_size_of_the_reduced_checkpoint() -> None:
    specs = list(checkpoint_tensors(model_config(REDUCED)))
    assert len({spec.name for spec in specs}) == len(specs)
    sizes = dict.fromkeys(("thinker", "talker", "code2wav"), 0)
    for spec in specs:
        sizes[spec.name.split(".")[0]] += math.prod(spec.shape)
    millions = {part: round(size / 1e6) for part, size in sizes.items()}
    assert millions == {"thinker": 72, "talker": 32, "code2wav": 16}
