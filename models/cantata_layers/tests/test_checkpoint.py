"""Reading tensors from one file or several."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import (
    INDEX_FILE,
    PICKLE_FILE,
    SINGLE_FILE,
    read_rows,
    read_tensors,
)

TENSORS = {
    "talker.a": torch.arange(6, dtype=torch.bfloat16).view(2, 3),
    "talker.b": torch.ones(4, dtype=torch.float16),
    "speaker_encoder.c": torch.zeros(2),
}


def shard(folder: Path) -> None:
    """Split the checkpoint into two files and an index."""
    files = {"talker.a": "one.safetensors", "talker.b": "two.safetensors"}
    files["speaker_encoder.c"] = "two.safetensors"
    for file in set(files.values()):
        save_file({name: TENSORS[name] for name in files if files[name] == file}, folder / file)
    (folder / INDEX_FILE).write_text(json.dumps({"metadata": {}, "weight_map": files}))


@pytest.mark.parametrize("sharded", [False, True])
def test_tensors_of_a_part(tmp_path: Path, sharded: bool) -> None:
    if sharded:
        shard(tmp_path)
    else:
        save_file(TENSORS, tmp_path / SINGLE_FILE)
    found = dict(read_tensors(tmp_path, "talker."))
    assert found.keys() == {"a", "b"}
    assert found["a"].dtype == torch.bfloat16
    assert torch.equal(found["a"], TENSORS["talker.a"])
    assert read_tensors(tmp_path).__next__()[0] in TENSORS


@pytest.mark.parametrize("sharded", [False, True])
def test_some_rows_of_a_tensor(tmp_path: Path, sharded: bool) -> None:
    if sharded:
        shard(tmp_path)
    else:
        save_file(TENSORS, tmp_path / SINGLE_FILE)
    assert torch.equal(read_rows(tmp_path, "talker.a", [1, 0, 1]), TENSORS["talker.a"][[1, 0, 1]])
    with pytest.raises(ConfigError, match=r"talker\.a has 2 rows, none \[2\]"):
        read_rows(tmp_path, "talker.a", [0, 2])
    with pytest.raises(ConfigError, match=r"no tensor 'talker\.z'"):
        read_rows(tmp_path, "talker.z", [0])


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither model\.safetensors,"):
        list(read_tensors(tmp_path))
    shard(tmp_path)
    with pytest.raises(ConfigError, match=r"starts with 'codec\.'"):
        list(read_tensors(tmp_path, "codec."))
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"two\.safetensors"):
        list(read_tensors(tmp_path, "talker."))
    (tmp_path / "two.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ConfigError, match=r"two\.safetensors: not a readable"):
        list(read_tensors(tmp_path, "talker."))


def test_a_pickle_of_tensors(tmp_path: Path) -> None:
    torch.save(TENSORS, tmp_path / PICKLE_FILE)
    found = dict(read_tensors(tmp_path, "talker."))
    assert found.keys() == {"a", "b"}
    assert torch.equal(found["a"], TENSORS["talker.a"])


def test_a_pickle_of_another_stem_with_more_than_tensors(tmp_path: Path) -> None:
    torch.save({"state_dict": TENSORS, "epoch": 3}, tmp_path / "codec.pth")
    found = dict(read_tensors(tmp_path, "talker.", stem="codec"))
    assert found.keys() == {"a", "b"}
    with pytest.raises(ConfigError, match=r"neither other\.safetensors, .* nor other\.pth"):
        list(read_tensors(tmp_path, stem="other"))


class Dangerous:
    """Unpickling it would run code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("1 / 0",)


@pytest.mark.parametrize("content", [[1, 2], {"talker.a": Dangerous()}])
def test_any_other_pickle_is_rejected(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / PICKLE_FILE)
    with pytest.raises(ConfigError, match=r"pytorch_model\.bin: (holds no|not a readable)"):
        list(read_tensors(tmp_path))


def test_a_damaged_pickle_is_named(tmp_path: Path) -> None:
    (tmp_path / PICKLE_FILE).write_bytes(b"no tensors")
    with pytest.raises(ConfigError, match=r"pytorch_model\.bin: not a readable"):
        list(read_tensors(tmp_path))
