"""`python -m cantata_models.quartet.training <stage>|all`: trains the voices."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from shutil import copyfile
from typing import Annotated, Any

import torch
import typer
from rich.logging import RichHandler
from safetensors.torch import save_file

from cantata.contract.data.errors import ConfigError
from cantata_layers.training.device import find_device
from cantata_models.quartet.config import CONFIG_FILE
from cantata_models.quartet.network import QuartetNetwork
from cantata_models.quartet.training.bank import SpeechBank
from cantata_models.quartet.training.generate import plan_speech, write_speech
from cantata_models.quartet.training.judging import (
    HELD_OUT_CLONES_FILE,
    HELD_OUT_FILE,
    CloneJudge,
    HeldOut,
    VoiceJudge,
    read_held_out,
    read_held_out_clones,
    write_held_out,
)
from cantata_models.quartet.training.packages import PackageMissing
from cantata_models.quartet.training.prosody_training import ProsodyTrainer
from cantata_models.quartet.training.questions import judge_questions, write_questions
from cantata_models.quartet.training.run_state import TimeBudget, load_checkpoint
from cantata_models.quartet.training.spectrum_training import SpectrumPlan, SpectrumTrainer
from cantata_models.quartet.training.start import make_network
from cantata_models.quartet.training.teachers import STOCK, KokoroTeacher, list_followed_voices
from cantata_models.quartet.voice import WEIGHTS_FILE, load_network

DEFAULT_FOLDER = Path(".cache/natural")
SERVED_FOLDER = Path(__file__).parents[1] / "weights"
JUDGED_OFTEN, JUDGED_IN_FULL = 4, 13
"""Sentences of a voice that are judged."""


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
    onward: bool
    """Begin with the served weights, not with hibari's."""
    device: torch.device
    """Where the networks learn; the teacher and the judges compute on the CPU."""
    publish: bool
    """Export over the served weights, too."""

    @property
    def packages(self) -> Path:
        """The folder of the teacher's packages, as they were downloaded."""
        return self.folder / "packages"

    @property
    def speech(self) -> Path:
        """The folder of shards for training."""
        return self.folder / "speech"

    @property
    def spectrum(self) -> Path:
        """The path of the spectra's checkpoint."""
        return self.folder / "spectrum.pt"

    @property
    def prosody(self) -> Path:
        """The path of the prosody's checkpoint."""
        return self.folder / "prosody.pt"

    @property
    def exported(self) -> Path:
        """The folder of the exported weights, which can be served as it is."""
        return self.folder / "weights"

    @property
    def budget(self) -> TimeBudget:
        """Return a budget that begins now."""
        return TimeBudget(self.minutes * 60, self.cool_minutes * 60)

    def begin(self) -> QuartetNetwork:
        """Make the network as it is before any training."""
        if self.onward:
            return load_network(SERVED_FOLDER).requires_grad_(True)
        return make_network(len(STOCK))

    def open_trained(self) -> QuartetNetwork:
        """Load the network with both predictors, as far as they were trained."""
        network = self.begin()
        for path, part in (
            (self.spectrum, network.spectrum),
            (self.prosody, network.prosody),
        ):
            saved = load_checkpoint(path)
            if saved is not None:
                part.load_state_dict(saved["mean"])
        return network.eval()

    def open_bank(self) -> SpeechBank:
        """Load the speech that was made so far."""
        followed = [voice.name for voice in list_followed_voices(self.packages).trained]
        return SpeechBank(self.speech, (*STOCK, *followed), len(STOCK), SpectrumPlan().frames)

    def open_spectrum(self) -> SpectrumTrainer:
        """Continue the training of the spectra."""
        return SpectrumTrainer(
            self.spectrum, self.open_bank(), self.begin(), len(STOCK), device=self.device
        )

    def open_prosody(self) -> ProsodyTrainer:
        """Continue the training of the prosody."""
        held_out = (*self.read_held_out(), *self.read_held_out_clones())
        return ProsodyTrainer(
            self.prosody,
            self.open_bank(),
            self.begin(),
            len(STOCK),
            held_out,
            device=self.device,
        )

    def read_held_out(self) -> HeldOut:
        """Read the held-out sentences of the stock voices."""
        return read_held_out(self.folder / HELD_OUT_FILE)

    def read_held_out_clones(self) -> HeldOut:
        """Read the held-out sentences of voices that are known by a recording."""
        return read_held_out_clones(self.folder / HELD_OUT_CLONES_FILE)

    def open_judge(self) -> VoiceJudge:
        """Raises: ConfigError: the judges are not installed."""
        return VoiceJudge(self.read_held_out())


def read_held_out_aloud(work: TrainingWorkspace) -> None:
    """Have the teacher read the sentences that judge the training."""
    write_held_out(work.packages, work.folder)
    write_questions(work.packages, work.folder)


def read_speech(work: TrainingWorkspace) -> None:
    """Have the teacher read the texts."""
    for part in plan_speech(work.packages, work.scale):
        write_speech(part, lambda: KokoroTeacher(work.packages), work.speech)


def train_spectrum(work: TrainingWorkspace) -> None:
    """Trains until the time is spent."""
    judge = work.open_judge()

    def listen(network: QuartetNetwork) -> dict[str, Any]:
        return dict(judge.judge_copies(network, JUDGED_OFTEN))

    work.open_spectrum().run(work.budget, listen)


def train_prosody(work: TrainingWorkspace) -> None:
    """Trains until the time is spent."""
    work.open_prosody().run(work.budget)


def judge_voices(work: TrainingWorkspace) -> None:
    """Prints the teacher's figures and the network's, as JSON."""
    judge, network = work.open_judge(), work.open_trained()
    typer.echo(json.dumps({"teacher": judge.judge_teacher()}))
    typer.echo(json.dumps({"copies": judge.judge_copies(network, JUDGED_IN_FULL)}))
    typer.echo(json.dumps({"speech": judge.judge_speech(network, JUDGED_IN_FULL)}))
    typer.echo(json.dumps({"clones": CloneJudge(work.read_held_out_clones()).judge(network)}))
    typer.echo(json.dumps({"questions": judge_questions(network, work.folder)}))


def export_weights(work: TrainingWorkspace) -> None:
    """Writes a folder that can be served; `publish`: the weights that are served, too."""
    weights = work.open_trained().state_dict()
    halves = {name: tensor.detach().half().contiguous() for name, tensor in weights.items()}
    work.exported.mkdir(parents=True, exist_ok=True)
    copyfile(SERVED_FOLDER / CONFIG_FILE, work.exported / CONFIG_FILE)
    for folder in (work.exported, SERVED_FOLDER) if work.publish else (work.exported,):
        path = folder / WEIGHTS_FILE
        save_file(halves, path)
        path.chmod(0o644)
        typer.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


RUNNERS: dict[TrainingStage, Callable[[TrainingWorkspace], None]] = {
    TrainingStage.HELD_OUT: read_held_out_aloud,
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
    onward: Annotated[
        bool, typer.Option(help="Begin with the served weights where there is no checkpoint.")
    ] = False,
    threads: Annotated[int, typer.Option(help="Threads for training.")] = 1,
    device: Annotated[
        str, typer.Option(help="Where the networks learn: `cpu`, `cuda` or `cuda:1`.")
    ] = "cpu",
    publish: Annotated[
        bool, typer.Option(help="Export over the weights that ship, too, not to the folder alone.")
    ] = False,
) -> None:
    """Run a stage. Finished work is kept, and training goes on from its checkpoint."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[RichHandler()])
    torch.set_num_threads(threads)
    chosen = list(RUNNERS) if stage is TrainingStage.ALL else [stage]
    try:
        found = find_device(device)
        work = TrainingWorkspace(workdir, scale, minutes, cool, onward, found, publish)
        for item in chosen:
            logging.getLogger(__name__).info("stage %s", item)
            RUNNERS[item](work)
    except (ConfigError, FileNotFoundError, PackageMissing) as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    typer.run(main)
