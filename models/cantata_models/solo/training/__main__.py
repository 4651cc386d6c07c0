"""`python -m cantata_models.solo.training <stage>|all`: trains the embedded voice."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.logging import RichHandler

from cantata_models.solo.checkpoint import WEIGHTS_FOLDER
from cantata_models.solo.training import stages
from cantata_models.solo.training.audio import TeacherMissing
from cantata_models.solo.training.evaluation.items import Selection, UnknownChoice
from cantata_models.solo.training.evaluation.report import report

DEFAULT_FOLDER = Path(".cache/solo/work")


class VoiceTrainingStage(StrEnum):
    """The stages, in the order that `all` runs them."""

    TEXT = "text"
    AUDIO = "audio"
    ALIGN = "align"
    CODEC_A = "codec-a"
    CODEC_B = "codec-b"
    TALKER = "talker"
    POLISH = "polish"
    EXPORT = "export"
    EVALUATE = "evaluate"
    ALL = "all"


def evaluate(work: stages.VoiceWorkspace) -> None:
    """Evaluates the weights and prints the tables to standard output, apart from the log."""
    typer.echo(report(stages.run_evaluate(work)))


RUNNERS: dict[VoiceTrainingStage, Callable[[stages.VoiceWorkspace], object]] = {
    VoiceTrainingStage.TEXT: stages.run_text,
    VoiceTrainingStage.AUDIO: stages.run_audio,
    VoiceTrainingStage.ALIGN: stages.run_align,
    VoiceTrainingStage.CODEC_A: stages.run_codec_a,
    VoiceTrainingStage.CODEC_B: stages.run_codec_b,
    VoiceTrainingStage.TALKER: stages.run_talker,
    VoiceTrainingStage.POLISH: stages.run_polish,
    VoiceTrainingStage.EXPORT: stages.run_export,
    VoiceTrainingStage.EVALUATE: evaluate,
}


def names(listed: str) -> tuple[str, ...]:
    """Splits "a, b" into names."""
    return tuple(part.strip() for part in listed.split(",") if part.strip())


def main(
    stage: Annotated[
        VoiceTrainingStage, typer.Argument(help="Stage to run; `all` runs them in order.")
    ],
    workdir: Annotated[
        Path, typer.Option(help="Folder for data and checkpoints.")
    ] = DEFAULT_FOLDER,
    weights: Annotated[Path, typer.Option(help="Folder that `export` writes.")] = WEIGHTS_FOLDER,
    start: Annotated[
        Path | None, typer.Option(help="Exported weights to start from, instead of random ones.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="`cpu` or `cuda`. Default: the GPU if there is one.")
    ] = "",
    hours_scale: Annotated[
        float, typer.Option(help="Factor on the amount of speech; 1 is 33 hours.")
    ] = 1.0,
    minutes_scale: Annotated[
        float, typer.Option(help="Factor on the training time; 1 is six hours.")
    ] = 1.0,
    workers: Annotated[
        int, typer.Option(help="Processes for audio and alignment; 0: one per core.")
    ] = 0,
    threads: Annotated[int, typer.Option(help="Threads for training.")] = 1,
    voices: Annotated[
        str, typer.Option(help="Voices to evaluate, comma-separated. Default: all.")
    ] = "",
    groups: Annotated[
        str, typer.Option(help="Groups of sentences to evaluate, comma-separated. Default: all.")
    ] = "",
    short: Annotated[bool, typer.Option(help="Evaluate only a few sentences.")] = False,
    publish: Annotated[
        bool, typer.Option(help="Update the model card, the baseline and docs/voice.")
    ] = False,
) -> None:
    """Run a stage. Finished work is kept, and training resumes from its checkpoint."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[RichHandler()])
    torch.set_num_threads(threads)
    usual = stages.VoiceTrainingMinutes()
    scaled = {
        name: getattr(usual, name) * minutes_scale for name in stages.VoiceTrainingMinutes.__slots__
    }
    work = stages.VoiceWorkspace(
        folder=workdir,
        device=device or ("cuda" if torch.cuda.is_available() else "cpu"),
        workers=workers or os.cpu_count() or 1,
        hours_scale=hours_scale,
        minutes=replace(usual, **scaled),
        weights=weights,
        selection=Selection(names(voices), names(groups), short),
        publishing=publish,
        start=start,
    )
    chosen = list(RUNNERS) if stage is VoiceTrainingStage.ALL else [stage]
    try:
        for item in chosen:
            logging.getLogger(__name__).info("stage %s", item)
            RUNNERS[item](work)
    except (TeacherMissing, UnknownChoice) as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    typer.run(main)
