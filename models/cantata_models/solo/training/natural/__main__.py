"""`python -m cantata_models.solo.training.natural <stage>|all`: trains the next voice's codec."""

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

from cantata.contract.data.errors import ConfigError
from cantata_models.solo.training.natural.bank import SpeechBank
from cantata_models.solo.training.natural.codec_training import (
    FilterCodecTrainer,
    TimeBudget,
    TrainingPlan,
)
from cantata_models.solo.training.natural.copies import CopyJudge
from cantata_models.solo.training.natural.filter_codec import (
    WEIGHTS_FILE,
    FilterCodec,
    export_codec,
)
from cantata_models.solo.training.natural.generate import plan_heart, plan_kokoro, write_parts
from cantata_models.solo.training.natural.held_out import read_held_out, write_held_out
from cantata_models.solo.training.natural.packages import PackageMissing
from cantata_models.solo.training.natural.teachers import HibariTeacher, KokoroTeacher

DEFAULT_FOLDER = Path(".cache/natural")
JUDGED_OFTEN, JUDGED_IN_FULL = 4, 24
"""Sentences of a group."""


class NaturalStage(StrEnum):
    """The stages, in the order that `all` runs them."""

    HEART = "heart"
    HELD_OUT = "held-out"
    KOKORO = "kokoro"
    CODEC = "codec"
    JUDGE = "judge"
    EXPORT = "export"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class NaturalWorkspace:
    """Where the stages store their results, and how much they do."""

    folder: Path
    scale: float
    budget: TimeBudget
    weights: Path

    @property
    def packages(self) -> Path:
        """The teachers, as they were downloaded."""
        return self.folder / "packages"

    @property
    def speech(self) -> Path:
        """Shards for training."""
        return self.folder / "speech"

    @property
    def held_out(self) -> Path:
        """Shards for judging."""
        return self.folder / "held_out"

    def open_trainer(self) -> FilterCodecTrainer:
        """The codec's training as far as it has come."""
        plan = TrainingPlan()
        bank = SpeechBank(self.speech, plan.frames)
        return FilterCodecTrainer(self.folder / "codec", bank, plan, start=self.weights)

    def open_judge(self) -> CopyJudge:
        """Raises: ConfigError: the judges are not installed."""
        return CopyJudge(read_held_out(self.held_out), self.held_out)


def read_heart(work: NaturalWorkspace) -> None:
    """hibari reads."""
    write_parts([plan_heart(work.scale)], HibariTeacher, work.speech)


def read_kokoro(work: NaturalWorkspace) -> None:
    """Kokoro reads."""
    parts = plan_kokoro(work.packages, work.scale)
    write_parts(parts, lambda: KokoroTeacher(work.packages), work.speech)


def train_codec(work: NaturalWorkspace) -> None:
    """Trains until the time is spent."""
    judge = work.open_judge()

    def listen(codec: FilterCodec) -> dict[str, Any]:
        return dict(judge.judge(codec, JUDGED_OFTEN))

    work.open_trainer().run(work.budget, listen)


def judge_codec(work: NaturalWorkspace) -> None:
    """Prints the teachers' figures and the codec's, as JSON."""
    judge, trainer = work.open_judge(), work.open_trainer()
    typer.echo(json.dumps({"teachers": judge.judge_teachers(JUDGED_IN_FULL)}))
    typer.echo(json.dumps({"copies": judge.judge(trainer.mean, JUDGED_IN_FULL)}))


def export_weights(work: NaturalWorkspace) -> None:
    """Writes the weights from which a training elsewhere goes on."""
    trainer = work.open_trainer()
    size = export_codec(trainer.mean, trainer.progress, work.weights)
    typer.echo(f"{work.weights}: {size / 1e6:.1f} MB after {trainer.progress.step} steps")


RUNNERS: dict[NaturalStage, Callable[[NaturalWorkspace], None]] = {
    NaturalStage.HEART: read_heart,
    NaturalStage.HELD_OUT: lambda work: write_held_out(work.packages, work.held_out),
    NaturalStage.KOKORO: read_kokoro,
    NaturalStage.CODEC: train_codec,
    NaturalStage.JUDGE: judge_codec,
    NaturalStage.EXPORT: export_weights,
}


def main(
    stage: Annotated[NaturalStage, typer.Argument(help="Stage to run; `all` runs all in order.")],
    workdir: Annotated[
        Path, typer.Option(help="Folder for packages, speech and checkpoints.")
    ] = DEFAULT_FOLDER,
    scale: Annotated[
        float, typer.Option(help="Factor on the amount of speech; 1 is about 14 hours.")
    ] = 1.0,
    minutes: Annotated[float, typer.Option(help="Time for training from now on.")] = 180.0,
    cool: Annotated[
        float, typer.Option(help="Minutes at the end in which the rate falls to a twentieth.")
    ] = 15.0,
    weights: Annotated[
        Path, typer.Option(help="Exported weights: a training without a checkpoint begins there.")
    ] = WEIGHTS_FILE,
    threads: Annotated[int, typer.Option(help="Threads for training.")] = 1,
) -> None:
    """Run a stage. Finished work is kept, and training goes on from its checkpoint."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[RichHandler()])
    torch.set_num_threads(threads)
    work = NaturalWorkspace(workdir, scale, TimeBudget(minutes * 60, cool * 60), weights)
    chosen = list(RUNNERS) if stage is NaturalStage.ALL else [stage]
    try:
        for item in chosen:
            logging.getLogger(__name__).info("stage %s", item)
            RUNNERS[item](work)
    except (ConfigError, FileNotFoundError, PackageMissing) as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    typer.run(main)
