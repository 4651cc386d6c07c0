"""Shortened steps: each rule does what its definition says, by branch, whatever the company."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.denoiser import DenoiserOptions, Skipping, SkipTest
from cantata_layers.qwen_image.defaults import FOLDER
from cantata_layers.qwen_image.stages.denoise import PictureDenoiser, load_picture_denoiser
from cantata_layers.qwen_image.transformer.blocks import BlockStack
from cantata_layers.qwen_image.transformer.network import Row, VelocityPredictor
from cantata_layers.qwen_image.transformer.skipping import COEFFICIENTS, EMPTY
from cantata_models.qwen_image.random_checkpoint.shapes import TINY, VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.jobs import Asked, drawn
from threads import threads

PLAIN = (0.0, 0.0, 0.0, 1.0, 0.0)
RULES = {
    "teacache": Skipping(SkipTest.INPUT, 1.7, 2, coefficients=PLAIN),
    "first_block": Skipping(SkipTest.RESIDUAL, 1.1, 1, first_blocks=1),
    "dual_block": Skipping(SkipTest.RESIDUAL, 1.3, 3, first_blocks=1, last_blocks=1, order=1),
    "taylorseer": Skipping(SkipTest.INTERVAL, 3, 2, order=2),
}
"""Random weights change much from step to step, so the limits are wide."""
COMPANY = (
    Asked(1),
    Asked(2, grid=(3, 3), steps=7, guidance=1.0, words=2),
    Asked(3, grid=(5, 4), steps=10, references=((2, 3),), words=17),
)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    with threads(1):
        yield


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), VARIANTS["edit-2511"], seed=1)


@pytest.fixture(scope="module")
def full(checkpoint: Path) -> PictureDenoiser:
    return load_picture_denoiser(checkpoint, DenoiserOptions("cpu", "float32"))


@pytest.fixture(scope="module", params=RULES)
def rule(request: pytest.FixtureRequest) -> Skipping:
    return RULES[request.param]


@pytest.fixture(scope="module")
def model(checkpoint: Path, rule: Skipping) -> PictureDenoiser:
    return load_picture_denoiser(checkpoint, DenoiserOptions("cpu", "float32", rule))


class Definition:
    """A rule by its definition, for one row at a time and with everything remembered."""

    def __init__(self, rule: Skipping, steps: int) -> None:
        self.rule, self.steps = rule, steps
        self.full: list[int] = []
        self.inputs: list[torch.Tensor] = []
        self.front: list[torch.Tensor] = []
        self.middle: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, stack: BlockStack) -> None:
        step, rule = len(self.inputs), self.rule
        end = stack.blocks - rule.last_blocks
        self.inputs.append(stack.first_inputs()[0].clone())
        start = stack.images[0].clone()
        stack.run(range(rule.first_blocks))
        image, text = stack.images[0].clone(), stack.texts[0].clone()
        self.front.append(image - start)
        if step < rule.warmup_steps or step == self.steps - 1 or self.is_far(step):
            stack.run(range(rule.first_blocks, end))
            self.full.append(step)
            self.middle[step] = stack.images[0] - image, stack.texts[0] - text
        else:
            stack.images[0].add_(self.foreseen(step, 0))
            stack.texts[0].add_(self.foreseen(step, 1))
        stack.run(range(end, stack.blocks))

    def is_far(self, step: int) -> bool:
        last = self.full[-1]
        if self.rule.test is SkipTest.INTERVAL:
            return step >= last + self.rule.limit
        if self.rule.test is SkipTest.RESIDUAL:
            return relative(self.front[last], self.front[step]) > self.rule.limit
        pairs = zip(self.inputs[last:step], self.inputs[last + 1 :], strict=True)
        return sum(relative(before, now) for before, now in pairs) > self.rule.limit

    def foreseen(self, step: int, stream: int) -> torch.Tensor:
        """Newton's way to write the same: backward differences over the last full steps."""
        *_, third, second, first = [None, None, *self.full]
        value = self.middle[self.full[-1]][stream]
        if self.rule.order == 0 or second is None:
            return value
        assert first is not None
        slope = (value - self.middle[second][stream]) / (first - second)
        made = value + slope * float(step - first)
        if self.rule.order == 1 or third is None:
            return made
        before = self.middle[second][stream] - self.middle[third][stream]
        bend = (slope - before / (second - third)) / (first - second)
        return made + bend * ((step - first) ** 2 / 2)


def relative(before: torch.Tensor, now: torch.Tensor) -> float:
    return float((now - before).abs().mean() / before.abs().mean())


def defined(
    full: PictureDenoiser, asked: Asked, rule: Skipping
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Latents of each step by the definition, and each branch's full steps."""
    network = full.network
    assert isinstance(network, VelocityPredictor)
    job = full.begin(asked.inputs(), asked.arrived())
    branches = [Definition(rule, asked.steps) for _ in job.branches]
    made = []
    for _ in range(asked.steps):
        velocities = [
            network.velocities([Row(condition, job.latents, job.share)], branch)[0]
            for condition, branch in zip(job.branches, branches, strict=True)
        ]
        moved = velocities[0]
        if len(velocities) > 1:
            text, other = velocities
            moved = other + asked.guidance * (text - other)
            moved = moved * (text.norm(dim=-1, keepdim=True) / moved.norm(dim=-1, keepdim=True))
        following = job.inputs.shares[job.step + 1]
        job.latents = job.latents + (torch.tensor(following) - torch.tensor(job.share)) * moved
        job.step += 1
        made.append(job.latents.numpy())
    return made, [branch.full for branch in branches]


def test_a_rule_does_what_it_is_defined_to_do(
    full: PictureDenoiser, model: PictureDenoiser, rule: Skipping
) -> None:
    for asked in COMPANY:
        expected, steps = defined(full, asked, rule)
        (found,) = drawn(model, [asked])
        np.testing.assert_allclose(found, np.stack(expected), rtol=0, atol=2e-5)
        # Some steps were shortened, some after the first of those were full.
        for branch in steps:
            assert rule.warmup_steps < len(branch) < asked.steps, branch


def test_branches_decide_by_themselves(full: PictureDenoiser) -> None:
    rule = RULES["first_block"]
    narrow = replace(rule, limit=0.9)
    first, second = defined(full, COMPANY[0], narrow)[1]
    assert first != second


def test_a_picture_does_not_depend_on_its_company(model: PictureDenoiser) -> None:
    alone = [drawn(model, [asked])[0] for asked in COMPANY]
    together = drawn(model, COMPANY)
    for expected, found in zip(alone, together, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_steps_that_are_all_far_apart_are_all_full(checkpoint: Path, full: PictureDenoiser) -> None:
    expected = drawn(full, COMPANY[:2])
    for rule in RULES.values():
        strict = Skipping(rule.test, 1e-9, 1, rule.first_blocks, rule.last_blocks, rule.order)
        model = load_picture_denoiser(checkpoint, DenoiserOptions("cpu", "float32", strict))
        for found, right in zip(drawn(model, COMPANY[:2]), expected, strict=True):
            np.testing.assert_array_equal(found, right)


def test_a_forward_that_fails_is_forgotten(
    model: PictureDenoiser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is tried again by itself if it failed in company."""
    expected = drawn(model, [COMPANY[0]])[0]
    job = model.begin(COMPANY[0].inputs(), COMPANY[0].arrived())
    for step in range(COMPANY[0].steps):
        with monkeypatch.context() as patch:
            patch.setattr(VelocityPredictor, "_run_last", failing)
            with pytest.raises(MemoryError):
                model.advance([job])
        model.advance([job])
        np.testing.assert_array_equal(model.latents(job), expected[step])


def failing(*_: object) -> None:
    raise MemoryError


def test_the_published_polynomial_is_used_unless_another_is_given(
    checkpoint: Path, full: PictureDenoiser
) -> None:
    asked = Asked(4, steps=6)
    plain, own, published = (
        drawn(
            load_picture_denoiser(
                checkpoint,
                DenoiserOptions(
                    "cpu", "float32", Skipping(SkipTest.INPUT, 11.0, 1, coefficients=coefficients)
                ),
            ),
            [asked],
        )[0]
        for coefficients in (PLAIN, None, COEFFICIENTS)
    )
    np.testing.assert_array_equal(own, published)
    assert np.abs(own - plain).max() > 1e-3


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_a_series_follows_its_order(order: int) -> None:
    """What a line takes at other distances is known; higher derivatives need more values."""
    series = EMPTY
    assert series.is_empty
    for step in (0, 1, 3, 4):
        series = series.noted(step, torch.tensor([5.0, -2.0 * step]), order)
    assert len(series.terms) == order + 1
    expected = [5.0, -14.0] if order else [5.0, -8.0]
    torch.testing.assert_close(series.at(7), torch.tensor(expected))


def test_a_checkpoint_that_draws_in_few_steps_takes_no_cache(
    checkpoint: Path, tmp_path: Path, rule: Skipping
) -> None:
    folder = tmp_path / "few"
    folder.mkdir()
    for part in checkpoint.iterdir():
        (folder / part.name).symlink_to(part)
    (folder / FOLDER).mkdir()
    (folder / FOLDER / "Qwen-Image-Lightning-4steps.safetensors").touch()
    with pytest.raises(ConfigError, match=r"cache: .* few steps"):
        load_picture_denoiser(folder, DenoiserOptions("cpu", "float32", rule))


def test_blocks_must_be_left_to_skip(checkpoint: Path) -> None:
    rule = Skipping(SkipTest.RESIDUAL, 0.1, 1, first_blocks=2, last_blocks=1)
    assert TINY.layers == 3
    with pytest.raises(ConfigError, match=r"first_blocks 2 and last_blocks 1 .* 3 blocks"):
        load_picture_denoiser(checkpoint, DenoiserOptions("cpu", "float32", rule))
