"""Requests become stage inputs: tokens, sizes, and errors that name what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageRequest
from cantata_layers.qwen_image.config import Family
from cantata_layers.qwen_image.stages.builder import PictureBuilder, PictureOffer
from cantata_layers.qwen_image.text.pictures import EDIT_AREAS, Size, near_area
from cantata_layers.qwen_image.text.prompts import ANSWER, PicturePrompts
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen_image.random_checkpoint.configs import special_ids
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.parity.scenarios import picture

FAMILIES = {"image": Family.IMAGE, "edit": Family.EDIT, "edit-2509": Family.EDIT_PLUS}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    scratch = tmp_path_factory.mktemp("checkpoints")
    return {name: write_checkpoint(scratch / name, VARIANTS[name], 1) for name in FAMILIES}


def spelled(folder: Path, tokens: list[int]) -> str:
    """The text of tokens, special ones too."""
    tokenizer = load_qwen_tokenizer(folder / "tokenizer")
    joined = "".join(str(tokenizer.id_to_token(token)) for token in tokens)
    return joined.translate({ord("Ġ"): " ", ord("Ċ"): "\n", ord("Ā"): "\0"})


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_dropped_ends_where_the_user_begins(name: str, folders: dict[str, Path]) -> None:
    """With a tokenizer in which, as in the published one, the template's words are tokens."""
    prompts = PicturePrompts(folders[name], FAMILIES[name])
    pictures = [] if name == "image" else [2]
    tokens = prompts.tokens("xyz", pictures).tolist()
    assert spelled(folders[name], tokens[: prompts.dropped]).endswith("<|im_start|>user\n")
    rest = spelled(folders[name], tokens[prompts.dropped :])
    places = "<|vision_start|><|image_pad|><|image_pad|><|vision_end|>"
    before = {"image": "", "edit": places, "edit-2509": f"Picture 1: {places}"}[name]
    assert rest == f"{before}xyz{ANSWER}"


def test_special_tokens_in_a_prompt_are_text(folders: dict[str, Path]) -> None:
    prompts = PicturePrompts(folders["edit-2509"], Family.EDIT_PLUS)
    prompt = "<|im_end|> <|image_pad|> \0 {}"
    tokens = prompts.tokens(prompt, [3, 4])
    ids = special_ids()
    assert (tokens == ids["<|image_pad|>"]).sum() == 7
    assert (tokens == ids["<|im_end|>"]).sum() == 2
    assert prompt in spelled(folders["edit"], tokens.tolist())


def test_edits_are_not_cut(folders: dict[str, Path]) -> None:
    long = "word " * 2000
    whole = PicturePrompts(folders["edit"], Family.EDIT).tokens(long, [4])
    assert len(whole) > 2000
    cut = PicturePrompts(folders["image"], Family.IMAGE).tokens(long)
    assert len(cut) == 34 + 512


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((1024, 1024), (1024, 1024)),
        ((1920, 1080), (1376, 768)),
        ((800, 1200), (832, 1248)),
        ((100, 77), (1152, 896)),
    ],
)
def test_references_are_resized_to_about_a_megapixel(
    given: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert near_area(EDIT_AREAS[Family.EDIT].kept, Size(*given)) == Size(*expected)


def test_the_text_encoder_sees_less_of_several_pictures() -> None:
    areas = EDIT_AREAS[Family.EDIT_PLUS]
    assert near_area(areas.seen, Size(1920, 1080)) == Size(512, 288)
    assert areas.kept == EDIT_AREAS[Family.EDIT].kept == EDIT_AREAS[Family.EDIT].seen


def test_a_planned_picture(folders: dict[str, Path]) -> None:
    builder = PictureBuilder(folders["image"])
    planned = builder.build("id", ImageRequest("xyz", width=160, height=96, steps=7))
    assert (planned.width, planned.height, planned.steps) == (160, 96, 7)
    texts = [len(t) - 34 for t in (planned.request.inputs["encode"].prompt,)]  # type: ignore[attr-defined]
    assert planned.prompt_tokens == texts[0]
    assert planned.reference_tokens == 0
    negative = len(planned.request.inputs["encode"].negative) - 34  # type: ignore[attr-defined]
    rows = [60 + texts[0], 60 + negative]
    assert (planned.size.tokens, planned.size.pairs) == (sum(rows), sum(row**2 for row in rows))


def test_the_size_of_an_edit_follows_its_last_picture(folders: dict[str, Path]) -> None:
    builder = PictureBuilder(folders["edit-2509"])
    pictures = (picture(64, 64, 1), picture(192, 108, 2))
    planned = builder.build("id", ImageRequest("x", pictures, guidance=1.0))
    assert (planned.width, planned.height) == (1376, 768)
    assert planned.reference_tokens == 64 * 64 + 86 * 48
    sized = builder.build("id", ImageRequest("x", pictures, width=64, height=80, guidance=1.0))
    assert (sized.width, sized.height) == (64, 80)


@pytest.mark.parametrize("guidance", [None, 0.0, 0.5, 1.0, 1.5])
def test_only_guided_pictures_have_a_negative_prompt(
    folders: dict[str, Path], guidance: float | None
) -> None:
    builder = PictureBuilder(folders["image"])
    request = ImageRequest("x", width=64, height=64, guidance=guidance, negative_prompt="bad")
    inputs = builder.build("id", request).request.inputs
    guided = guidance is None or guidance > 1
    assert (inputs["encode"].negative is not None) is guided  # type: ignore[attr-defined]
    expected = 4.0 if guidance is None else max(guidance, 1.0)
    assert inputs["denoise"].guidance == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "request_", "message", "param"),
    [
        ("image", ImageRequest("x", (picture(32, 32, 1),)), "takes 0 to 0", "image"),
        ("edit", ImageRequest("x"), "0 pictures; this model takes 1 to 1", "image"),
        ("edit", ImageRequest("x", (picture(32, 32, 1),) * 2), "takes 1 to 1", "image"),
        ("edit-2509", ImageRequest("x", (picture(32, 32, 1),) * 4), "takes 1 to 3", "image"),
        ("edit", ImageRequest("x", (picture(8000, 2, 1),)), "too narrow", "image"),
        ("edit", ImageRequest("word " * 3000, (picture(64, 64, 1),)), "at most 4064", "prompt"),
        ("image", ImageRequest("x", width=100, height=64), "multiples of 16", "size"),
        ("image", ImageRequest("x", width=4096, height=4096), "at most 4194304", "size"),
    ],
)
def test_what_cannot_be_drawn_is_named(
    folders: dict[str, Path], name: str, request_: ImageRequest, message: str, param: str
) -> None:
    with pytest.raises(InvalidRequest, match=message) as raised:
        PictureBuilder(folders[name]).build("id", request_)
    assert raised.value.param == param


def test_limits_and_warm_up(folders: dict[str, Path]) -> None:
    offer = PictureOffer(Size(128, 128), 128, 128 * 128, steps=20, guidance=3.0, note="A toy.")
    builder = PictureBuilder(folders["image"], offer)
    limits = builder.limits
    assert (limits.default_size, limits.default_steps) == ((128, 128), 20)
    assert (limits.default_guidance, builder.note) == (3.0, "A toy.")
    for name, expected in (("image", 0), ("edit", 1), ("edit-2509", 3)):
        made = PictureBuilder(folders[name])
        assert made.limits.max_references == expected
        for request in made.warm_up:
            assert made.build("id", request).steps == 2


def test_pixels_are_resized_once(folders: dict[str, Path]) -> None:
    """A picture of the right size stays as it is, bit for bit."""
    builder = PictureBuilder(folders["edit"])
    right = picture(1024, 1024, 3)
    inputs = builder.build("id", ImageRequest("x", (right,))).request.inputs
    np.testing.assert_array_equal(inputs["vae_encode"].pictures[0], right)  # type: ignore[attr-defined]
