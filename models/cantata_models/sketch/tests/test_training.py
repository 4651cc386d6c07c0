"""The training loop, the losses, and a whole small training from pictures to a drawing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cantata_layers.training.loop import LEVEL_FIRST, TrainingLoop, read_average
from cantata_models.sketch.request_builder import SIDE
from cantata_models.sketch.tests.made_pictures import made_pictures
from cantata_models.sketch.training import stages
from cantata_models.sketch.training.autoencoder_training import (
    as_tensor,
    is_unseen,
    picture_loss,
    psnr,
    seen_pixels,
    unseen_pixels,
)
from cantata_models.sketch.training.checkpoint_files import (
    CODE,
    PARTS,
    read_autoencoder,
    read_drawer,
)
from cantata_models.sketch.training.picture_training import optimizers
from cantata_models.sketch.training.sampling import draw_latents, draw_pictures

SOON = 0.02
"""Minutes of a training that only has to run."""


def line(path: Path, minutes: float) -> tuple[nn.Linear, TrainingLoop]:
    torch.manual_seed(0)
    network = nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1, weight_decay=0.0)
    return network, TrainingLoop(
        path, {"line": network}, [optimizer], minutes, LEVEL_FIRST, averaged=network
    )


def run_line(network: nn.Linear, loop: TrainingLoop, until: int = 10**9) -> None:
    given = torch.randn(64, 2)

    def loss(step: int) -> tuple[Tensor, dict[str, float]]:
        if step == until:
            os.kill(os.getpid(), signal.SIGTERM)
        wrong = (network(given)[:, 0] - given @ torch.tensor([3.0, -2.0])).square().mean()
        return wrong, {}

    loop.run(loss)


@pytest.fixture(autouse=True)
def handlers() -> object:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_a_training_learns_and_keeps_the_average(tmp_path: Path) -> None:
    network, loop = line(tmp_path / "line.pt", SOON)
    run_line(network, loop)
    average = read_average(tmp_path / "line.pt", network)["weight"]
    torch.testing.assert_close(average, torch.tensor([[3.0, -2.0]]), rtol=0.05, atol=0.05)


def test_a_stopped_training_goes_on_where_it_was(tmp_path: Path) -> None:
    network, loop = line(tmp_path / "line.pt", 60)
    with pytest.raises(SystemExit):
        run_line(network, loop, until=20)
    resumed, again = line(tmp_path / "line.pt", 60)
    assert again.progress.step == 21
    assert (resumed.weight == network.weight).all()
    before, after = (x.optimizers[0].state_dict()["state"][0]["exp_avg"] for x in (loop, again))
    assert (before == after).all()


def test_the_rate_rises_stays_and_falls() -> None:
    assert LEVEL_FIRST.find_scale(0.0, 0) < 0.05
    assert LEVEL_FIRST.find_scale(0.2, 1000) == 1.0
    assert LEVEL_FIRST.find_scale(0.7, 1000) == pytest.approx(0.51, abs=0.01)
    assert LEVEL_FIRST.find_scale(1.0, 1000) == pytest.approx(0.02)


def test_every_picture_is_seen_or_unseen() -> None:
    pictures = made_pictures()
    unseen = [is_unseen(name) for name in pictures.names]
    assert len(seen_pixels(pictures)) == unseen.count(False)
    assert len(unseen_pixels(pictures)) == unseen.count(True)


def test_psnr_of_a_known_error() -> None:
    real = as_tensor(made_pictures().pixels[:2]).clamp(-0.5, 0.5)
    assert psnr(real + 0.2, real) == pytest.approx([20.0, 20.0], abs=1e-3)
    assert float(picture_loss(real + 0.2, real)) == pytest.approx(0.2, abs=1e-5)


def test_every_weight_has_one_optimizer(tmp_path: Path) -> None:
    work = made_workspace(tmp_path)
    drawer = work.drawer()
    groups = [group["params"] for item in optimizers(drawer) for group in item.param_groups]
    owned = [id(parameter) for parameters in groups for parameter in parameters]
    assert sorted(owned) == sorted(id(parameter) for parameter in drawer.parameters())
    assert all(parameter.dim() == 2 for parameter in groups[0])


def test_weights_from_elsewhere_alone_are_trained_at_smaller_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    monkeypatch.setattr(stages, "train_drawer", lambda *_, further: told.append(further))
    work = made_workspace(tmp_path)
    stages.run_text(work)
    stages.run_drawer(work)
    stages.run_export(work)
    stages.run_drawer(work)
    elsewhere = stages.PictureWorkspace(tmp_path / "other", work.minutes, work.weights)
    made_pictures().save(elsewhere.folder / "pictures.npz")
    stages.run_data(elsewhere)
    stages.run_drawer(elsewhere)
    assert told == [False, False, True]


def test_all_rates_share_a_factor(tmp_path: Path) -> None:
    drawer = made_workspace(tmp_path).drawer()
    usual, slow = (
        [group["lr"] for item in optimizers(drawer, share) for group in item.param_groups]
        for share in (1.0, 0.25)
    )
    assert slow == pytest.approx([0.25 * rate for rate in usual])


def made_workspace(folder: Path) -> stages.PictureWorkspace:
    """A workspace with made pictures in place of the font's."""
    minutes = stages.PictureTrainingMinutes(decoder=SOON, encoder=SOON, text=SOON, drawer=SOON)
    work = stages.PictureWorkspace(folder / "work", minutes, folder / "weights")
    made_pictures().save(work.folder / "pictures.npz")
    stages.run_data(work)
    return work


@pytest.mark.thorough
def test_a_training_from_pictures_to_a_checkpoint(tmp_path: Path) -> None:
    torch.manual_seed(0)
    work = made_workspace(tmp_path)
    for run in (stages.run_decoder, stages.run_encoder, stages.run_text, stages.run_drawer):
        run(work)
    stages.run_export(work)
    assert {path.name for path in work.weights.iterdir()} == {*PARTS, "model_index.json", CODE}
    drawer, autoencoder = read_drawer(work.weights), read_autoencoder(work.weights)
    trained = read_average(work.state("drawer"), drawer)
    name = "transformer.img_in.weight"
    torch.testing.assert_close(drawer.state_dict()[name], trained[name], rtol=1e-3, atol=1e-4)
    pictures = draw_pictures(drawer, autoencoder, ["red disc", "blue square"])
    assert pictures.shape == (2, SIDE, SIDE, 3)
    assert pictures.dtype == np.uint8

    further = stages.PictureWorkspace(tmp_path / "other", work.minutes, work.weights)
    made_pictures().save(further.folder / "pictures.npz")
    stages.run_data(further)
    begun = further.drawer().state_dict()
    assert (begun[name] == drawer.state_dict()[name]).all()
    assert further.code_path.read_bytes() == (work.weights / CODE).read_bytes()


def test_a_picture_depends_on_its_seed_alone(tmp_path: Path) -> None:
    work = made_workspace(tmp_path)
    torch.manual_seed(0)
    drawer = work.drawer().eval()
    for parameter in drawer.transformer.parameters():
        nn.init.normal_(parameter, std=0.05)
    two = draw_latents(drawer, ["red disc", "square"], seed=5, steps=3)
    second = draw_latents(drawer, ["square"], seed=6, steps=3)
    torch.testing.assert_close(two[1], second[0], rtol=1e-3, atol=1e-3)
    other = draw_latents(drawer, ["square"], seed=7, steps=3)
    assert (other - second).abs().max() > 0.1
