"""The trainings on a device that pretends to be a GPU compute what the CPU does, and save what any
device continues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from torch import nn
from typer.testing import CliRunner

from cantata.contract.data.errors import ConfigError
from cantata_layers.speaker_features import SPEAKER_SIZE
from cantata_layers.training.device import CPU, find_device, upload
from cantata_models.quartet.network import QuartetNetwork
from cantata_models.quartet.tests.test_training_data import HUM, HummingTeacher
from cantata_models.quartet.training.__main__ import (
    SERVED_FOLDER,
    TrainingWorkspace,
    export_weights,
    main,
)
from cantata_models.quartet.training.bank import SpeechBank, SpokenBy
from cantata_models.quartet.training.prosody_training import ProsodyPlan, ProsodyTrainer
from cantata_models.quartet.training.run_state import read_figures
from cantata_models.quartet.training.shards import write_shard
from cantata_models.quartet.training.spectrum_training import SpectrumPlan, SpectrumTrainer
from cantata_models.quartet.training.teachers import ScriptLine
from cantata_models.quartet.voice import WEIGHTS_FILE, load_network
from pretended_device import Move, device, in_own_process, pretended

FRAMES = 36
WITHOUT_ADVERSARY = SpectrumPlan(rows=2, frames=FRAMES)
WITH_ADVERSARY = replace(WITHOUT_ADVERSARY, adversary_after=0, adversary_warm_steps=0)
LINES = [ScriptLine(text, tuple(range(1, n)), 1.1) for text, n in (("Is it?", 25), ("It is.", 28))]

Trainer = SpectrumTrainer | ProsodyTrainer


@pytest.fixture
def speech(tmp_path: Path) -> SpeechBank:
    spoken = [HummingTeacher(hertz).read(HUM, line) for hertz in (110.0, 160.0) for line in LINES]
    write_shard(tmp_path / "speech" / "hum.npz", spoken)
    return SpeechBank(tmp_path / "speech", ("a_hum",), 1, FRAMES)


def open_trainers(folder: Path, speech: SpeechBank, where: torch.device) -> dict[str, Trainer]:
    """The trainings in a folder: new and the same each time, or as they were saved."""
    trainers = dict[str, Trainer]()
    for name, plan in {"spectra": WITHOUT_ADVERSARY, "adversary": WITH_ADVERSARY}.items():
        path = folder / f"{name}.pt"
        trainers[name] = SpectrumTrainer(path, speech, make_network(), 1, plan, device=where)
    silent = np.zeros(SPEAKER_SIZE, np.float32)
    held_out = [SpokenBy(HummingTeacher(130.0).read(HUM, LINES[0]), 0, 0, silent)]
    trainers["prosody"] = ProsodyTrainer(
        folder / "prosody.pt",
        speech,
        make_network(),
        1,
        held_out,
        ProsodyPlan(rows=2),
        device=where,
    )
    return trainers


def make_network() -> QuartetNetwork:
    """The same network each time; what is drawn after it is the same, too."""
    torch.manual_seed(0)
    network = QuartetNetwork(1)
    for block in (*network.spectrum.blocks, *network.prosody.blocks):
        nn.init.constant_(block.get_parameter("gamma"), 0.1)
    return network


def list_learners(trainer: Trainer) -> list[nn.Module]:
    """The networks of a training that have optimizers."""
    if isinstance(trainer, SpectrumTrainer):
        return [trainer.trained, trainer.discriminator]
    return [trainer.trained]


def copy_gradients(trainer: Trainer) -> list[torch.Tensor]:
    """The gradients of a training's last step, on the CPU."""
    learnt = [x.grad for module in list_learners(trainer) for x in module.parameters()]
    return [grad.cpu() for grad in learnt if grad is not None]


def copy_state(trainer: Trainer) -> list[torch.Tensor]:
    """All that a checkpoint keeps of the networks, on the CPU."""
    modules = [*list_learners(trainer), trainer.network]
    return [tensor.cpu().clone() for module in modules for tensor in module.state_dict().values()]


def take_steps(trainers: dict[str, Trainer]) -> dict[str, dict[str, float]]:
    """The figures of a step of each; the noise in the sound is the same each time."""
    figures = {}
    for name, trainer in trainers.items():
        torch.manual_seed(1)
        figures[name] = read_figures(trainer.take_step())
    return figures


def find_waits(moves: Iterable[Move]) -> set[str]:
    """Where the host waited for the device, but in reading the figures to log."""
    return {move.places[0] for move in moves if move.waits and "run_state" not in move.places[0]}


def join(state: Sequence[torch.Tensor]) -> torch.Tensor:
    """[all numbers] of some tensors."""
    return torch.cat([tensor.flatten() for tensor in state])


def are_alike(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> bool:
    """Whether tensors differ by no more than rounding."""
    pairs = list(zip(ours, theirs, strict=True))
    return all((mine - other).norm() <= 1e-2 * other.norm() + 1e-6 for mine, other in pairs)


@pytest.mark.thorough
@in_own_process
def test_the_device_computes_what_the_cpu_does(
    tmp_path: Path, speech: SpeechBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)  # float32 on both
    gpu = device()
    here = open_trainers(tmp_path / "here", speech, CPU)
    begun = {name: join(copy_state(trainer)) for name, trainer in here.items()}
    wanted = take_steps(here)
    with pretended() as moves:
        there = open_trainers(tmp_path / "there", speech, gpu)
        for trainer in there.values():
            parameters = [x for module in list_learners(trainer) for x in module.parameters()]
            assert {x.device for x in parameters} == {gpu}
        moves.clear()
        figures = take_steps(there)
        assert find_waits(moves) == set()
        assert sum(move.what == "queued" for move in moves) > 20
        gradients = {name: copy_gradients(trainer) for name, trainer in there.items()}
        for trainer in there.values():
            trainer.save()
        states = {name: copy_state(trainer) for name, trainer in there.items()}
    assert figures["adversary"].keys() == {"distance", "hinge", "deceit", "features"}
    for name, trainer in here.items():
        assert figures[name] == pytest.approx(wanted[name], rel=1e-3, abs=1e-4)
        assert are_alike(gradients[name], copy_gradients(trainer))
        trainer.save()
        # Adam moves a weight by the sign of its gradient, also of one that is but rounding.
        moved = join(copy_state(trainer)) - begun[name]
        assert (join(states[name]) - begun[name] - moved).norm() < 0.1 * moved.norm()
        assert {x.device for x in there[name].network.parameters()} == {CPU}  # for the judges

    # Each checkpoint goes on where the other device is.
    resumed = open_trainers(tmp_path / "there", speech, CPU)
    assert all(trainer.step == 1 for trainer in resumed.values())
    for name, trainer in resumed.items():
        assert all(map(torch.equal, copy_state(trainer), states[name]))
    with pretended():
        for name, trainer in open_trainers(tmp_path / "here", speech, gpu).items():
            assert all(map(torch.equal, copy_state(trainer), copy_state(here[name])))


def test_on_the_cpu_a_batch_stays_as_it_is(speech: SpeechBank) -> None:
    speech.refresh()
    crops = speech.draw(np.random.default_rng(0), 2)
    assert upload(crops, CPU) is crops


def test_a_device_that_is_not_there_is_an_error_that_names_what_is() -> None:
    assert find_device("cpu") == CPU
    for name in ("cuda:99", "tpu", ""):
        with pytest.raises(ConfigError, match=f"device '{name}' is not there.* sees cpu"):
            find_device(name)


def test_a_training_on_a_missing_gpu_is_refused_before_it_begins(tmp_path: Path) -> None:
    options = ["speech", "--workdir", str(tmp_path), "--device", "cuda:99"]
    command = typer.Typer()
    command.command()(main)
    answer = CliRunner().invoke(command, options)
    assert answer.exit_code == 2
    assert "'cuda:99'" in answer.output
    assert not list(tmp_path.iterdir())


def test_what_is_exported_can_be_served_and_replaces_nothing(tmp_path: Path) -> None:
    served = SERVED_FOLDER / WEIGHTS_FILE
    before = served.stat()
    work = TrainingWorkspace(tmp_path, 1.0, 0.0, 0.0, onward=True, device=CPU, publish=False)
    export_weights(work)
    assert served.stat() == before
    ours, theirs = load_network(work.exported), load_network(SERVED_FOLDER)
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))
