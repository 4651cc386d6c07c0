"""`python -m cantata_models.quartet.training <stage>|all`: trains the voices."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.logging import RichHandler
from safetensors.torch import save_file

from cantata.contract.data.errors import ConfigError
from cantata_models.quartet.checkpoint import WEIGHTS_FILE
from cantata_models.quartet.network import QuartetNetwork
from cantata_models.quartet.training.bank import SpeechBank
from cantata_models.quartet.training.generate import plan_speech, write_speech
from cantata_models.quartet.training.judging import (
    HELD_OUT_CLONES_FILE,
    HELD_OUT_FILE,
    CloneJudge,
    HeldOut,
    SpeechJudge,
    read_held_out,
    read_held_out_clones,
    write_held_out,
)
from cantata_models.quartet.training.packages import PackageMissing
from cantata_models.quartet.training.prosody_training import ProsodyTrainer
from cantata_models.quartet.training.run_state import TimeBudget
from cantata_models.quartet.training.spectrum_training import SpectrumPlan, SpectrumTrainer
from cantata_models.quartet.training.start import make_network
from cantata_models.quartet.training.teachers import STOCK, KokoroTeacher, list_followed_voices

DEFAULT_FOLDER = Path(".cache/natural")
SERVED_FOLDER = Path(__file__).parents[1] / "weights"
JUDGED_OFTEN, JUDGED_IN_FULL = 4, 13
"""Sentences of a voice."""


class TrainingStage(StrEnum):
    """The stages, in the order that `all` runs them."""

    HELD_OUT = "held-out"
    SPEECH = "speech"
    SPECTRUM = "spectrum"
    PROSODY = "prosody"
    JUDGE = "judge"
    EXPORT = "export"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class TrainingWorkspace:
    """Where the stages store their results, and how much they do."""

    folder: Path
    scale: float
    minutes: float
    cool_minutes: float

    @property
    def packages(self) -> Path:
        """The teacher, as it was downloaded."""
        return self.folder / "packages"

    @property
    def speech(self) -> Path:
        """Shards for training."""
        return self.folder / "speech"

    @property
    def budget(self) -> TimeBudget:
        """From now on."""
        return TimeBudget(self.minutes * 60, self.cool_minutes * 60)

    def open_bank(self) -> SpeechBank:
        """The speech that there is."""
        followed = [voice.name for voice in list_followed_voices(self.packages).trained]
        return SpeechBank(self.speech, (*STOCK, *followed), len(STOCK), SpectrumPlan().frames)

    def open_spectrum(self, network: QuartetNetwork) -> SpectrumTrainer:
        """The training of the spectra as far as it has come."""
        path = self.folder / "spectrum.pt"
        return SpectrumTrainer(path, self.open_bank(), network, len(STOCK))

    def open_prosody(self, network: QuartetNetwork) -> ProsodyTrainer:
        """The training of the prosody as far as it has come."""
        path = self.folder / "prosody.pt"
        held_out = (*self.read_held_out(), *self.read_held_out_clones())
        return ProsodyTrainer(path, self.open_bank(), network, len(STOCK), held_out)

    def read_held_out(self) -> HeldOut:
        """Of the stock voices."""
        return read_held_out(self.folder / HELD_OUT_FILE)

    def read_held_out_clones(self) -> HeldOut:
        """Of voices that are known by a recording."""
        return read_held_out_clones(self.folder / HELD_OUT_CLONES_FILE)

    def open_judge(self) -> SpeechJudge:
        """Raises: ConfigError: the judges are not installed."""
        return SpeechJudge(self.read_held_out())


def read_speech(work: TrainingWorkspace) -> None:
    """The teacher reads."""
    for part in plan_speech(work.packages, work.scale):
        write_speech(part, lambda: KokoroTeacher(work.packages), work.speech)


def train_spectrum(work: TrainingWorkspace) -> None:
    """Trains until the time is spent."""
    judge = work.open_judge()

    def listen(network: QuartetNetwork) -> dict[str, Any]:
        return dict(judge.judge_copies(network, JUDGED_OFTEN))

    work.open_spectrum(make_network(len(STOCK))).run(work.budget, listen)


def train_prosody(work: TrainingWorkspace) -> None:
    """Trains until the time is spent."""
    work.open_prosody(make_network(len(STOCK))).run(work.budget)


def open_trained(work: TrainingWorkspace) -> QuartetNetwork:
    """The network with both predictors as far as they are trained."""
    network = make_network(len(STOCK))
    work.open_spectrum(network)
    work.open_prosody(network)
    return network.eval()


def judge_voices(work: TrainingWorkspace) -> None:
    """Prints the teacher's figures and the network's, as JSON."""
    judge, network = work.open_judge(), open_trained(work)
    typer.echo(json.dumps({"teacher": judge.judge_teacher()}))
    typer.echo(json.dumps({"copies": judge.judge_copies(network, JUDGED_IN_FULL)}))
    typer.echo(json.dumps({"speech": judge.judge_speech(network, JUDGED_IN_FULL)}))
    typer.echo(json.dumps({"clones": CloneJudge(work.read_held_out_clones()).judge(network)}))


def export_weights(work: TrainingWorkspace) -> None:
    """Writes the weights that are served."""
    weights = open_trained(work).state_dict()
    halves = {name: tensor.detach().half().contiguous() for name, tensor in weights.items()}
    path = SERVED_FOLDER / WEIGHTS_FILE
    save_file(halves, path)
    path.chmod(0o644)
    typer.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


RUNNERS: dict[TrainingStage, Callable[[TrainingWorkspace], None]] = {
    TrainingStage.HELD_OUT: lambda work: write_held_out(work.packages, work.folder),
    TrainingStage.SPEECH: read_speech,
    TrainingStage.SPECTRUM: train_spectrum,
    TrainingStage.PROSODY: train_prosody,
    TrainingStage.JUDGE: judge_voices,
    TrainingStage.EXPORT: export_weights,
}


def main(
    stage: Annotated[TrainingStage, typer.Argument(help="Stage to run; `all` runs all in order.")],
    workdir: Annotated[
        Path, typer.Option(help="Folder for packages, speech and checkpoints.")
    ] = DEFAULT_FOLDER,
    scale: Annotated[
        float, typer.Option(help="Factor on the amount of speech; 1 is about four hours.")
    ] = 1.0,
    minutes: Annotated[float, typer.Option(help="Time for each training from now on.")] = 120.0,
    cool: Annotated[
        float, typer.Option(help="Minutes at the end in which the rate falls to a twentieth.")
    ] = 10.0,
    threads: Annotated[int, typer.Option(help="Threads for training.")] = 1,
) -> None:
    """Run a stage. Finished work is kept, and training goes on from its checkpoint."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[RichHandler()])
    torch.set_num_threads(threads)
    work = TrainingWorkspace(workdir, scale, minutes, cool)
    chosen = list(RUNNERS) if stage is TrainingStage.ALL else [stage]
    try:
        for item in chosen:
            logging.getLogger(__name__).info("stage %s", item)
            RUNNERS[item](work)
    except (ConfigError, FileNotFoundError, PackageMissing) as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    typer.run(main)
