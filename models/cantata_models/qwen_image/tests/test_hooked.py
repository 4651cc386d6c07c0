"""The denoiser as diffusers computes it, where that is installed: the same, and with its hooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import distributed

from cantata.contract.data.errors import ConfigError, InvalidRequest, NotInstalled
from cantata.contract.model.denoiser import (
    DenoiserOptions,
    Hooked,
    Parallel,
    Ranks,
    Skipping,
    SkipTest,
)
from cantata.stages.diffusion.ranks.load import load_ranked
from cantata_layers.qwen_image.defaults import FOLDER
from cantata_layers.qwen_image.diffusers_backend.network import HookedNetwork, state_caches
from cantata_layers.qwen_image.stages.denoise import PictureDenoiser, load_picture_denoiser
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from cantata_models.qwen_image.tests.jobs import Asked, drawn
from cantata_models.qwen_image.tests.parity.scenarios import checkpoint_for, scenario_named
from process_group import leave_process_group
from threads import threads

pytestmark = pytest.mark.filterwarnings("default")
"""Of the library's own warnings."""
FACTORY = "cantata_layers.qwen_image.stages.denoise:load_picture_denoiser"
ROUNDING = 5e-5
"""Between float32 programs that add in another order, after all steps."""
COMPANY = (
    Asked(1, steps=6),
    Asked(2, steps=5, guidance=1.0, words=2),
    Asked(3, grid=(3, 3), steps=6, references=((2, 3),), words=17),
    Asked(4, steps=6, words=5),
)
FIRST_BLOCK = Skipping(SkipTest.RESIDUAL, 1.1, 1, first_blocks=1)
TAYLOR = Skipping(SkipTest.INTERVAL, 2, 2, order=1)


@pytest.fixture(scope="module", autouse=True)
def diffusers() -> Iterator[Any]:
    """WHY offline: nothing here may ask a model hub."""
    with patch.dict(os.environ, {"HF_HUB_OFFLINE": "1"}), threads(1):
        yield pytest.importorskip("diffusers")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), VARIANTS["edit-2511"], seed=1)


@pytest.fixture(scope="module")
def packed(checkpoint: Path) -> list[np.ndarray]:
    model = load_picture_denoiser(checkpoint, DenoiserOptions("cpu", "float32"))
    return drawn(model, COMPANY)


def load(
    checkpoint: Path,
    hooked: Hooked | None = None,
    skipping: Skipping | None = None,
    ranks: Ranks | None = None,
) -> PictureDenoiser:
    options = DenoiserOptions("cpu", "float32", skipping, ranks, hooked or Hooked())
    return load_picture_denoiser(checkpoint, options)


def get_transformer(model: PictureDenoiser) -> Any:
    assert isinstance(model.network, HookedNetwork)
    return model.network.transformer


@pytest.mark.parametrize("hooked", [Hooked(), Hooked("native"), Hooked(offload_blocks=1)], ids=str)
def test_both_executors_draw_the_same(
    checkpoint: Path, packed: list[np.ndarray], hooked: Hooked
) -> None:
    """Also in company, which pictures of one size have; texts of other lengths are masked."""
    model = load(checkpoint, hooked)
    for found, expected in zip(drawn(model, COMPANY), packed, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)
    hooks = [
        getattr(module, "_diffusers_hook", None) for module in get_transformer(model).modules()
    ]
    offloaded = any(hook is not None and "group_offloading" in hook.hooks for hook in hooks)
    assert offloaded == (hooked.offload_blocks is not None)


def test_pictures_of_one_size_share_a_forward(checkpoint: Path) -> None:
    model = load(checkpoint)
    jobs = [model.begin(asked.inputs(), asked.arrived()) for asked in COMPANY]
    first, second, third, fourth = (model.group(job) for job in jobs)
    assert first == second == fourth != third
    forwards: list[int] = []
    get_transformer(model).register_forward_pre_hook(
        lambda module, args, kwargs: forwards.append(len(kwargs["hidden_states"])), with_kwargs=True
    )
    model.advance([jobs[0], jobs[1], jobs[3]])
    assert forwards == [5]


def test_lora_files_are_fused_for_both(tmp_path: Path) -> None:
    folder = checkpoint_for(scenario_named("lora"), tmp_path)
    options = DenoiserOptions("cpu", "float32")
    fused = drawn(load_picture_denoiser(folder, options), COMPANY[:1])[0]
    np.testing.assert_allclose(drawn(load(folder), COMPANY[:1])[0], fused, rtol=0, atol=ROUNDING)
    (folder / FOLDER).rename(folder / "elsewhere")
    plain = drawn(load_picture_denoiser(folder, options), COMPANY[:1])[0]
    assert np.abs(plain - fused).max() > 100 * ROUNDING


def test_weights_may_be_stored_as_float8(checkpoint: Path, packed: list[np.ndarray]) -> None:
    model = load(checkpoint, Hooked(float8=True))
    blocks = get_transformer(model).transformer_blocks
    assert blocks[0].attn.to_q.weight.dtype == torch.float8_e4m3fn
    (found,) = drawn(model, COMPANY[:1])
    apart = np.abs(found[0] - packed[0][0])
    assert 1e-3 < apart.mean() < 0.1 * packed[0][0].std()


@pytest.mark.parametrize("skipping", [FIRST_BLOCK, TAYLOR], ids=["first_block", "taylorseer"])
def test_caches_keep_each_branch_apart_and_forget_it(
    checkpoint: Path, packed: list[np.ndarray], skipping: Skipping
) -> None:
    model = load(checkpoint, skipping=skipping)
    alone = [drawn(model, [asked])[0] for asked in COMPANY[:2]]
    together = drawn(model, COMPANY[:2])
    for found, expected, full in zip(together, alone, packed, strict=False):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(found[0], full[0], rtol=0, atol=ROUNDING)
        # The cache did something.
        assert np.abs(found[-1] - full[-1]).max() > 100 * ROUNDING
    job = model.begin(COMPANY[0].inputs(), COMPANY[0].arrived())
    model.advance([job])
    states = state_caches(get_transformer(model))
    assert any(states)
    assert all(len(branches) <= 2 for branches in states)
    del job
    assert not any(states)


def test_the_packed_cache_is_diffusers_own(checkpoint: Path) -> None:
    """Both have the first-block cache: the same steps are shortened in the same way."""
    ours = load_picture_denoiser(checkpoint, DenoiserOptions("cpu", "float32", FIRST_BLOCK))
    for asked in (COMPANY[0], COMPANY[2]):
        steps = asked.steps - 1  # which the last one is not
        (theirs,) = drawn(load(checkpoint, skipping=FIRST_BLOCK), [asked])
        (own,) = drawn(ours, [asked])
        np.testing.assert_allclose(own[:steps], theirs[:steps], rtol=0, atol=ROUNDING)


@pytest.mark.thorough
@pytest.mark.integration
def test_ulysses_on_two_ranks_draws_the_same(checkpoint: Path, packed: list[np.ndarray]) -> None:
    """On a CPU; texts of odd numbers too, but pictures whose tokens the ranks share evenly."""
    leave_process_group()
    options = DenoiserOptions("cpu", "float32", ranks=Ranks(Parallel.ULYSSES, 2), hooked=Hooked())
    model = load_ranked(FACTORY, checkpoint, options)
    even = [number for number, asked in enumerate(COMPANY) if not asked.references]
    try:
        with pytest.raises(InvalidRequest, match=r"15 tokens of pictures; .* multiples of 2"):
            model.begin(COMPANY[2].inputs(), COMPANY[2].arrived())
        made = drawn(model, [COMPANY[number] for number in even])
        for found, number in zip(made, even, strict=True):
            np.testing.assert_allclose(found, packed[number], rtol=0, atol=ROUNDING)
    finally:
        model.close()
        distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("hooked", "skipping", "ranks", "message"),
    [
        (Hooked("fast"), None, None, "attention: .*fast"),
        (Hooked(), Skipping(SkipTest.INPUT, 0.2, 1), None, "'first_block' .* or 'taylorseer'"),
        (Hooked(), Skipping(SkipTest.RESIDUAL, 0.2, 4, 1), None, "only a threshold"),
        (Hooked(), None, Ranks(Parallel.RING, 2), "no 'ring' on a CPU"),
        (Hooked(), None, Ranks(Parallel.TENSOR, 2), "no 'tensor' on a CPU"),
        (Hooked(), None, Ranks(Parallel.ULYSSES, 3), "3 ranks cannot share 2 heads"),
    ],
)
def test_what_diffusers_cannot_do_here_is_refused(
    checkpoint: Path,
    hooked: Hooked,
    skipping: Skipping | None,
    ranks: Ranks | None,
    message: str,
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(checkpoint, hooked, skipping, ranks)


def test_without_diffusers_the_error_names_the_extra(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(NotInstalled, match=r"cantata\[diffusers\]"):
        load(checkpoint)
