"""`python -m cantata_models.sketch.training <stage>|all`: trains the embedded picture model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.logging import RichHandler

from cantata_models.sketch.plugin import WEIGHTS_FOLDER
from cantata_models.sketch.training import stages
from cantata_models.sketch.training.evaluation.run import run_evaluate
from cantata_models.sketch.training.packages import SourceMissing

DEFAULT_FOLDER = Path(".cache/sketch/work")


class PictureTrainingStage(StrEnum):
    """The stages, in the order that `all` runs them."""

    DATA = "data"
    DECODER = "decoder"
    ENCODER = "encoder"
    TEXT = "text"
    DRAWER = "drawer"
    EXPORT = "export"
    EVALUATE = "evaluate"
    ALL = "all"


def evaluate(work: stages.PictureWorkspace) -> None:
    """Measures the weights and prints the tables to standard output, apart from the log."""
    typer.echo(run_evaluate(work))


RUNNERS: dict[PictureTrainingStage, Callable[[stages.PictureWorkspace], None]] = {
    PictureTrainingStage.DATA: stages.run_data,
    PictureTrainingStage.DECODER: stages.run_decoder,
    PictureTrainingStage.ENCODER: stages.run_encoder,
    PictureTrainingStage.TEXT: stages.run_text,
    PictureTrainingStage.DRAWER: stages.run_drawer,
    PictureTrainingStage.EXPORT: stages.run_export,
    PictureTrainingStage.EVALUATE: evaluate,
}


def main(
    stage: Annotated[
        PictureTrainingStage, typer.Argument(help="Stage to run; `all` runs them in order.")
    ],
    workdir: Annotated[
        Path, typer.Option(help="Folder for data and checkpoints.")
    ] = DEFAULT_FOLDER,
    weights: Annotated[
        Path,
        typer.Option(help="Folder that `export` writes; training starts from weights there."),
    ] = WEIGHTS_FOLDER,
    minutes_scale: Annotated[
        float, typer.Option(help="Factor on the training time; 1 is five hours.")
    ] = 1.0,
    threads: Annotated[int, typer.Option(help="Threads for training.")] = 1,
    publish: Annotated[bool, typer.Option(help="Update docs/models/sketch.md.")] = False,
) -> None:
    """Run a stage. Finished work is kept, and training resumes from its checkpoint."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[RichHandler()])
    torch.set_num_threads(threads)
    usual = asdict(stages.PictureTrainingMinutes())
    scaled = stages.PictureTrainingMinutes(
        **{name: value * minutes_scale for name, value in usual.items()}
    )
    work = stages.PictureWorkspace(workdir, scaled, weights, publish)
    chosen = (
        list(RUNNERS) if stage is PictureTrainingStage.ALL else [PictureTrainingStage.DATA, stage]
    )
    try:
        for item in dict.fromkeys(chosen):
            logging.getLogger(__name__).info("stage %s", item)
            RUNNERS[item](work)
    except SourceMissing as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    typer.run(main)
