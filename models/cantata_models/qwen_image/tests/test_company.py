"""In float32 on a CPU a picture is the same bits alone and beside any others, at any depth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.model.denoiser import DenoiserOptions
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen_image.config import load_config, read_transformer
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.stages.denoise import load_picture_denoiser
from cantata_layers.qwen_image.transformer.load import (
    DenoiserPlacement,
    load_denoiser,
    place,
    weight_bytes,
)
from cantata_layers.qwen_image.transformer.modulation import Modulations
from cantata_layers.qwen_image.transformer.network import ReferenceTokens, Row, VelocityPredictor
from cantata_models.qwen_image.random_checkpoint import configs
from cantata_models.qwen_image.random_checkpoint.shapes import PUBLISHED, VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.drawing import CPU, Studio
from cantata_models.qwen_image.tests.parity.scenarios import (
    SCENARIOS,
    QwenImageScenario,
    checkpoint_for,
)
from threads import threads

PLAIN = [s for s in SCENARIOS if s.variant == "image" and s.lora is None and s.name != "large"]


def studio_for(variant: str, folder: Path) -> Studio:
    return Studio(checkpoint_for(QwenImageScenario("any", "", variant=variant), folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.mark.parametrize(("count", "pictures"), [(1, len(PLAIN)), (3, 3)])
def test_pictures_of_any_size_and_depth_do_not_change_each_other(
    folder: Path, count: int, pictures: int
) -> None:
    """With one thread and with more: then kernels split their work elsewhere."""
    with threads(count):
        studio = studio_for("image", folder)
        requests = [r for scenario in PLAIN[:pictures] for r in scenario.requests()]
        alone = [studio.draw(request) for request in requests]
        for order in (requests, requests[::-1]):
            together = studio.draw_together(order)
            expected = alone if order is requests else alone[::-1]
            for ours, other in zip(expected, together, strict=True):
                np.testing.assert_array_equal(ours.latents, other.latents)
                np.testing.assert_array_equal(ours.pixels, other.pixels)


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("variant", ["edit", "edit-2509", "edit-2511"])
def test_edits_do_not_change_each_other(folder: Path, variant: str) -> None:
    edits = [s.requests()[0] for s in SCENARIOS if s.variant == variant]
    plain = ImageRequest("Another", edits[0].references, 32, 48, 99, None, 3, 1.0)
    with threads(1):
        studio = studio_for(variant, folder)
        requests = [*edits, plain]
        together = studio.draw_together(requests)
        for request, other in zip(requests, together, strict=True):
            np.testing.assert_array_equal(studio.draw(request).latents, other.latents)


def test_a_job_may_join_at_any_step_of_another(folder: Path) -> None:
    with threads(1):
        studio = studio_for("image", folder)
        first, second = PLAIN[0].requests()[0], PLAIN[1].requests()[0]
        expected = studio.draw(first).latents
        inputs = [studio.inputs(r) for r in (first, second)]
        for joins in range(len(expected)):
            job, other = (studio.denoiser.begin(i["denoise"], studio.encoded(i)) for i in inputs)
            for step, after in enumerate(expected):
                company = [other, job] if joins <= step < joins + 2 else [job]
                studio.denoiser.advance(company)
                np.testing.assert_array_equal(studio.denoiser.latents(job), after)


@pytest.fixture(scope="module")
def network(folder: Path) -> Iterator[VelocityPredictor]:
    checkpoint = write_checkpoint(folder / "still", VARIANTS["edit-2511"], 3)
    config = load_config(checkpoint).transformer
    with threads(1):
        yield load_denoiser(checkpoint, config, place(config, CPU, torch.float32))


def row(network: VelocityPredictor, share: float, seed: int) -> Row:
    source = torch.Generator().manual_seed(seed)
    grid, other = Grid(3, 4), Grid(2, 2)
    text = torch.randn(5, 48, generator=source)
    reference = ReferenceTokens(torch.randn(other.tokens, 64, generator=source), other)
    condition = network.prepare(text, grid, [reference])
    return Row(condition, torch.randn(grid.tokens, 64, generator=source), share)


def test_modulations_are_the_same_however_they_were_computed(network: VelocityPredictor) -> None:
    weights = network.modulations.weights
    shares = [1.0, 0.93, 0.5, 0.0]
    together = Modulations(weights, CPU).of(shares)
    for share, other in zip(shares, together, strict=True):
        (alone,) = Modulations(weights, CPU).of([share])
        assert torch.equal(alone.image, other.image)
        assert torch.equal(alone.text, other.text)
        assert torch.equal(alone.last, other.last)


def test_few_modulations_are_kept(network: VelocityPredictor) -> None:
    table = Modulations(network.modulations.weights, CPU, kept=2)
    before = table.of([0.1, 0.2, 0.3])
    assert len(table) == 2
    again = table.of([0.1, 0.3])
    assert torch.equal(before[0].image, again[0].image)
    assert again[1] is before[2]


def test_references_are_modulated_as_without_noise(network: VelocityPredictor) -> None:
    """At two shares of noise, what differs between rows is only what the share may change."""
    rows = [row(network, share, 1) for share in (0.9, 0.4)]
    together = network.velocities(rows)
    for one, velocity in zip(rows, together, strict=True):
        assert torch.equal(network.velocities([one])[0], velocity)
    assert not torch.equal(*together)


def test_bfloat16_is_near(folder: Path, network: VelocityPredictor) -> None:
    checkpoint = folder / "still"
    config = load_config(checkpoint).transformer
    rounded = load_denoiser(checkpoint, config, DenoiserPlacement(CPU, torch.bfloat16, CPU))
    # Other shares are rounded too, as the reference does.
    exact = network.velocities([row(network, 0.5, 2)])[0]
    near = rounded.velocities([row(rounded, 0.5, 2)])[0]
    assert near.dtype == torch.float32
    noise = (near - exact).pow(2).mean() / exact.pow(2).mean()
    assert 0 < noise < 1e-3


def test_float16_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="valid: float32, bfloat16"):
        load_picture_denoiser(folder, DenoiserOptions("cpu", "float16"))


def test_the_published_size() -> None:
    """20.4 billion weights in blocks, a third of them in modulations."""
    values = configs.transformer(PUBLISHED, VARIANTS["image"])
    config = read_transformer(JsonFields(values, "published"))
    assert round(weight_bytes(config, torch.bfloat16) / 1e9, 1) == 40.8
    assert round(weight_bytes(config, torch.bfloat16, modulation=False) / 1e9, 1) == 27.2
