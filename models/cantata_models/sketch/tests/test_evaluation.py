"""Each measure of the gates must notice the fault that it is for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cantata_models.sketch.tests.made_pictures import INKS, made_pictures, shape
from cantata_models.sketch.training.autoencoder_training import as_tensor
from cantata_models.sketch.training.captions import get_kind, painted_pictures
from cantata_models.sketch.training.evaluation import page
from cantata_models.sketch.training.evaluation.gates import (
    NameScore,
    Neighbour,
    PairScore,
    Reconstruction,
    evenly,
    judged_pairs,
    likeness,
    share,
)
from cantata_models.sketch.training.evaluation.judge import (
    disturbed,
    named,
    reliability,
    shrunk,
    train_judge,
)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> torch.nn.Sequential:
    return train_judge(made_pictures().pixels, tmp_path_factory.mktemp("judge") / "j.pt", 60)


@pytest.mark.thorough
def test_the_judge_names_real_pictures(judge: torch.nn.Sequential) -> None:
    pictures = made_pictures()
    kinds = [get_kind(name) for name in pictures.names]
    assert [kinds[index] for index in named(judge, pictures.pixels)[:, 0].tolist()] == kinds
    assert reliability(judge, pictures.pixels, kinds) > 0.7
    assert reliability(judge, pictures.pixels[::-1], kinds) < 0.7


@pytest.mark.thorough
def test_the_judge_is_not_fooled_by_a_colour(judge: torch.nn.Sequential) -> None:
    pictures = made_pictures()
    squares = np.stack([shape("square", ink) for ink in INKS.values()])
    kinds = [pictures.names[index] for index in named(judge, squares)[:, 0].tolist()]
    assert all(kind.endswith("square") for kind in kinds)


@pytest.mark.thorough
def test_truly_painted_pictures_keep_their_kind(judge: torch.nn.Sequential) -> None:
    pictures = made_pictures()
    assert judged_pairs(judge, pictures, painted_pictures(pictures)) > 0.6


def test_disturbed_paper_stays_white() -> None:
    blank = torch.ones(2, 3, 64, 64)
    assert (disturbed(blank) - 1).abs().max() < 0.5
    assert (disturbed(blank).mean() - 1).abs() < 0.01


def test_a_picture_is_most_like_itself() -> None:
    pictures = made_pictures()
    table = likeness(pictures.pixels, pictures)
    assert table.argmax(axis=1).tolist() == list(range(9))
    half = as_tensor(pictures.pixels[:1])
    assert shrunk(half).shape == (1, 3, 64, 64)
    other = likeness(np.full((1, 128, 128, 3), 255, np.uint8), pictures)
    assert other.max() < table.diagonal().min()


def test_shares_and_places() -> None:
    assert share([True, False, False, True]) == 0.5
    assert evenly(10, 3) == [0, 4, 9]
    assert evenly(2, 5) == [0, 1]


def test_the_page_gets_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "sketch.md")
    monkeypatch.setattr(page, "SHEET", tmp_path / "sketch.png")
    page.PAGE.write_text(f"before\n{page.START}\nold\n{page.END}\nafter\n")
    pair = PairScore(7, 0.9, 0.5, 0.75)
    report = page.SketchReport(
        Reconstruction(29.04, 28.5, 65), 0.97, 0.8, NameScore(9, 0.7, 0.8, 0.6, 18.2), pair, pair,
        [Neighbour("blue cat", "cat", 15.0)], 0.3,
    )  # fmt: skip
    page.publish(page.as_text(report), made_pictures().pixels)
    text = page.PAGE.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| blue cat | cat | 15.0 |" in text
    assert "| 29.0 dB |" in text
    assert page.SHEET.stat().st_size > 0
