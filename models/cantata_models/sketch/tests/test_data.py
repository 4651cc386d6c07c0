"""Pictures, colours, captions, the latent code and the vocabulary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cantata_models.sketch.tests.made_pictures import INKS, made_pictures, shape
from cantata_models.sketch.training import packages
from cantata_models.sketch.training.captions import (
    get_kind,
    is_held_out,
    named_pair,
    painted_pictures,
    shown_names,
)
from cantata_models.sketch.training.colours import HUES, main_hue, nearest_colour, paint
from cantata_models.sketch.training.examples import EMPTY, make_examples, vocabulary_corpus
from cantata_models.sketch.training.latent_code import CHANNELS, LatentCode, cells, fit_code
from cantata_models.sketch.training.pictures import TrainingPictures, plain_name, read_annotations
from cantata_models.sketch.training.words import (
    AFTER,
    CLOSING,
    DROPPED,
    CaptionPrompts,
    train_vocabulary,
)


@pytest.mark.parametrize("colour", INKS)
def test_the_main_hue_is_the_ink(colour: str) -> None:
    found = main_hue(shape("disc", INKS[colour]))
    assert nearest_colour(found.degrees) == colour
    assert found.share > 0.95


def test_a_grey_picture_has_no_main_hue() -> None:
    assert main_hue(shape("disc", "#707070")).share == 0.0


@pytest.mark.parametrize("colour", HUES)
def test_paint_changes_the_ink_and_leaves_the_paper(colour: str) -> None:
    before = shape("disc", INKS["red"])
    after = paint(before, main_hue(before), colour)
    assert nearest_colour(main_hue(after).degrees) == colour
    paper = (before == 255).all(axis=-1)
    assert (after[paper] == 255).all()


def test_paint_leaves_other_hues_alone() -> None:
    picture = shape("disc", INKS["red"])
    picture[60:68, 60:68] = (32, 128, 224)
    after = paint(picture, main_hue(picture), "green")
    assert nearest_colour(main_hue(after[60:68, 60:68]).degrees) == "blue"


def test_names_and_kinds() -> None:
    assert plain_name("Man\u2019s Shoe: Old!") == "man's shoe old"
    assert get_kind("green heart") == "heart"
    assert named_pair("green heart") == ("green", "heart")
    assert named_pair("heart") is None
    assert named_pair("green") is None


def test_annotations_are_read(tmp_path: Path) -> None:
    path = tmp_path / "en.xml"
    path.write_text(
        '<ldml><annotations><annotation cp="x">one | two</annotation>'
        '<annotation cp="x" type="tts">name</annotation></annotations></ldml>'
    )
    assert read_annotations(path) == {"x": ("name", ["one", "two"])}


def test_held_out_pairs_are_never_shown() -> None:
    pictures = made_pictures()
    pictures.names[0] = "green heart"
    examples = make_examples(pictures, fit_code(pictures.pixels))
    assert is_held_out("green", "heart")
    assert 0 not in examples.named
    assert not [item.caption for item in examples.painted if item.held_out]
    dice = np.random.default_rng(0)
    captions = {caption for _ in range(40) for caption in examples.draw(16, dice)[1]}
    assert EMPTY in captions
    assert not [caption for caption in captions if caption.lower().endswith("green heart")]


def test_every_kind_is_painted_once_in_every_colour() -> None:
    painted = painted_pictures(made_pictures())
    assert len(painted) == 2 * len(HUES)
    assert {item.kind for item in painted} == {"disc", "square"}
    assert len(shown_names(made_pictures())) >= 7


def test_the_code_keeps_what_cells_have_in_common(tmp_path: Path) -> None:
    pictures = made_pictures()
    code = fit_code(pictures.pixels)
    latents = code.encode(pictures.pixels)
    assert latents.shape == (9, CHANNELS, 16, 16)
    assert abs(float(latents.mean())) < 1e-3
    back = np.moveaxis(latents, 1, -1) @ np.linalg.pinv(code.forward) + code.mean
    assert np.abs(back - cells(pictures.pixels)).mean() < 0.02
    code.save(tmp_path / "code.safetensors")
    assert (LatentCode.load(tmp_path / "code.safetensors").encode(pictures.pixels) == latents).all()


def test_pictures_are_stored_whole(tmp_path: Path) -> None:
    pictures = made_pictures()
    pictures.save(tmp_path / "pictures.npz")
    stored = TrainingPictures.load(tmp_path / "pictures.npz")
    assert (stored.pixels == pictures.pixels).all()
    assert stored.names == pictures.names
    assert stored.keywords == pictures.keywords
    assert stored.symbols == pictures.symbols


def test_the_prompt_is_as_long_as_the_published_one(tmp_path: Path) -> None:
    train_vocabulary(vocabulary_corpus(made_pictures()), tmp_path)
    prompts = CaptionPrompts(tmp_path)
    empty = prompts.ids("")
    assert len(empty) == DROPPED + CLOSING
    assert prompts.tokenizer.decode(empty[DROPPED:]) == AFTER
    ids = prompts.ids("red disc")
    assert ids[:DROPPED] == empty[:DROPPED]
    assert prompts.tokenizer.decode(ids[DROPPED:-CLOSING]) == "red disc"


def test_a_batch_of_prompts_is_padded_on_the_right(tmp_path: Path) -> None:
    train_vocabulary(vocabulary_corpus(made_pictures()), tmp_path)
    prompts = CaptionPrompts(tmp_path)
    tokens, mask = prompts.batch(["red disc", " "])
    assert mask.sum(dim=1).tolist() == [2 + CLOSING, 1 + CLOSING]
    assert (tokens[~mask] == prompts.padding).all()
    assert tokens[0].tolist() == prompts.ids("red disc")[DROPPED:]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {"fonts-nowhere": Path("usr/share/nowhere.ttf")})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(packages.SourceMissing, match="fonts-nowhere"):
        packages.find_sources(tmp_path)
