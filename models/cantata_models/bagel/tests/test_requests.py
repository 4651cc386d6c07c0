"""What a request may ask of it, and what is refused, with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.model.denoiser import DenoiserOptions, Hooked
from cantata_layers.qwen_image.text.pictures import Size
from cantata_layers.random_tensors import write_json
from cantata_models.bagel.config import LANGUAGE
from cantata_models.bagel.denoiser import load_denoiser
from cantata_models.bagel.inputs import Branch, DrawInput, Guidance, Renorm
from cantata_models.bagel.picture_builder import BagelPictureBuilder
from cantata_models.bagel.pictures import PUBLISHED
from cantata_models.bagel.plugin import DENOISE, REFERENCES_STAGE, SEE
from cantata_models.bagel.random_checkpoint import write_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), seed=1)


@pytest.fixture(scope="module")
def builder(checkpoint: Path) -> BagelPictureBuilder:
    return BagelPictureBuilder(checkpoint)


def asked(builder: BagelPictureBuilder, **more: Any) -> DrawInput:
    request = ImageRequest("a", options=more.pop("options", {}), **more)
    made = builder.build("a", request).request.inputs[DENOISE]
    assert isinstance(made, DrawInput)
    return made


PICTURE = np.zeros((300, 500, 3), np.uint8)


def test_the_defaults_are_those_of_the_publishers_app(builder: BagelPictureBuilder) -> None:
    drawn, changed = asked(builder), asked(builder, references=(PICTURE,))
    assert drawn.guidance == Guidance(4.0, 1.5, (0.4, 1.0), Renorm.GLOBAL)
    assert changed.guidance == Guidance(4.0, 2.0, (0.0, 1.0), Renorm.TEXT_CHANNEL)
    assert len(drawn.times) == len(changed.times) == 50
    assert drawn.times[1] == pytest.approx(3 * (48 / 49) / (1 + 2 * 48 / 49))
    assert drawn.grid == (64, 64)
    assert changed.grid == (512 // 16, 848 // 16)
    assert drawn.thought is None


def test_a_request_names_the_stages_that_take_part(builder: BagelPictureBuilder) -> None:
    alone = builder.build("a", ImageRequest("a"))
    changed = builder.build("a", ImageRequest("a", (PICTURE,)))
    assert not {SEE, REFERENCES_STAGE} & alone.request.inputs.keys()
    assert {SEE, REFERENCES_STAGE} <= changed.request.inputs.keys()
    assert (changed.width, changed.height, changed.steps) == (848, 512, 3 + 49)
    assert changed.reference_tokens == 32 * 53 + 37 * 61
    assert alone.size.tokens == 2 * 4098
    assert changed.size.tokens == 3 * (32 * 53 + 2)


def test_a_thought_counts_as_steps(builder: BagelPictureBuilder) -> None:
    options = {"think": True, "max_think_token_n": 20, "text_temperature": 0.3}
    planned = builder.build("a", ImageRequest("a", steps=5, options=options))
    assert planned.steps == 2 + 20 + 1 + 5


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (Size(1024, 1024), Size(1024, 1024)),
        (Size(4000, 3000), Size(1024, 768)),
        (Size(100, 100), Size(512, 512)),
        (Size(300, 900), Size(336, 1024)),
    ],
)
def test_pictures_are_resized_within_the_published_bounds(size: Size, expected: Size) -> None:
    assert PUBLISHED.kept.fit(size) == expected


@pytest.mark.parametrize(
    ("field", "request_"),
    [
        ("cfg_renorm_type", ImageRequest("a", options={"cfg_renorm_type": "none"})),
        ("cfg_interval", ImageRequest("a", options={"cfg_interval": [0.2, 1.5]})),
        ("cfg_img_scale", ImageRequest("a", options={"cfg_img_scale": 0.5})),
        ("timestep_shift", ImageRequest("a", options={"timestep_shift": 0})),
        ("max_think_token_n", ImageRequest("a", options={"max_think_token_n": 0})),
        ("think", ImageRequest("a", options={"think": "perhaps"})),
        ("negative_prompt", ImageRequest("a", negative_prompt="rain")),
        ("size", ImageRequest("a", width=2048, height=512)),
        ("size", ImageRequest("a", width=100, height=96)),
        ("image", ImageRequest("a", (PICTURE,) * 9)),
        ("image", ImageRequest("a", (np.zeros((2, 300, 3), np.uint8),))),
        ("prompt", ImageRequest("a b " * 20_000)),
    ],
)
def test_what_is_not_served_is_refused_by_name(
    builder: BagelPictureBuilder, field: str, request_: ImageRequest
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        builder.build("a", request_)
    assert caught.value.param == field
    assert field in str(caught.value)


def test_an_interval_must_not_end_before_it_begins(builder: BagelPictureBuilder) -> None:
    with pytest.raises(InvalidRequest, match=r"cfg_interval: .* must not end"):
        builder.build("a", ImageRequest("a", options={"cfg_interval": [0.8, 0.4]}))


def test_guidance_needs_no_forward_that_has_no_effect() -> None:
    guidance = Guidance(4.0, 1.5, (0.4, 1.0), Renorm.GLOBAL)
    assert guidance.branches(1.0) == (Branch.FULL, Branch.NO_TEXT, Branch.NO_IMAGES)
    assert guidance.branches(float(np.float32(0.4))) == (Branch.FULL,)
    assert Guidance(4.0, 1.0, (0.0, 1.0), Renorm.GLOBAL).branches(0.5) == (
        Branch.FULL,
        Branch.NO_TEXT,
    )
    assert Guidance(1.0, 2.0, (0.0, 1.0), Renorm.GLOBAL).branches(0.5) == (Branch.FULL,)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("rms_norm_eps", 1e-5, "rms_norm_eps"),
        ("num_key_value_heads", 3, "key heads"),
        ("hidden_size", 128, r"has misshapen language_model\.model\."),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(
    tmp_path: Path, key: str, value: float, said: str
) -> None:
    write_checkpoint(tmp_path, seed=1)
    fields = dict(_read(tmp_path / LANGUAGE))
    write_json(tmp_path / LANGUAGE, {**fields, key: value})
    with pytest.raises(ConfigError, match=said):
        load_denoiser(tmp_path, DenoiserOptions("cpu", "float32"))


def test_options_that_the_stage_cannot_have_are_refused(checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match="hooked"):
        load_denoiser(checkpoint, DenoiserOptions("cpu", "float32", hooked=Hooked()))
    with pytest.raises(ConfigError, match="float16"):
        load_denoiser(checkpoint, DenoiserOptions("cpu", "float16"))


def _read(path: Path) -> dict[str, Any]:

    values: dict[str, Any] = json.loads(path.read_text())
    return values
