"""Runs the evaluation, from weights to figures."""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import TypeAdapter

from cantata_models.solo.config import load_config
from cantata_models.solo.training.audio import require_teachers
from cantata_models.solo.training.evaluation.items import Selection, UnknownChoice, plan_items
from cantata_models.solo.training.evaluation.pace import measure_pace
from cantata_models.solo.training.evaluation.publish import publish
from cantata_models.solo.training.evaluation.report import report
from cantata_models.solo.training.evaluation.results import measure_all, weights_digest
from cantata_models.solo.training.evaluation.summary import Summary, summarise
from cantata_models.solo.training.evaluation.synthesis import Synthesiser

logger = logging.getLogger(__name__)

SUMMARY = TypeAdapter(Summary)
FIGURES_FILE = "figures.json"
REPORT_FILE = "report.md"
ALL = Selection()


def evaluate(
    weights: Path,
    folder: Path,
    selection: Selection = ALL,
    workers: int = 2,
    publishing: bool = False,
) -> Summary:
    """Measures the weights; writes figures.json and report.md into `folder`.

    With `publishing` it also writes the model card's tables, docs/voice, and the baseline for the
    short form.

    Raises:
        TeacherMissing: RHVoice is not installed.
        UnknownChoice: a voice or group is unknown, or publishing only a part.
    """
    if publishing and not selection.everything:
        raise UnknownChoice("only the whole evaluation can be published")
    require_teachers()
    voices = [voice.id for voice in load_config(weights).voices]
    items = plan_items(voices, selection)
    results = measure_all(items, weights, folder, workers)
    paces = measure_pace(Synthesiser.load(weights), items)
    summary = summarise(weights_digest(weights), results, paces)
    figures = SUMMARY.dump_json(summary, indent=2) + b"\n"
    text = report(summary)
    (folder / FIGURES_FILE).write_bytes(figures)
    (folder / REPORT_FILE).write_text(text)
    logger.info("figures and report are in %s", folder)
    if publishing:
        publish(summary, results, figures, weights, folder)
    return summary
