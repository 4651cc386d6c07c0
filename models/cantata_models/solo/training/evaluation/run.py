"""Runs the evaluation, from weights to figures, and publishes the results: the model card's tables,
a picture and audio samples.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import soundfile
from pydantic import TypeAdapter

from cantata_models.solo.config import load_config
from cantata_models.solo.training.audio import require_teachers
from cantata_models.solo.training.evaluation.acoustics import SAMPLE_RATE, Samples
from cantata_models.solo.training.evaluation.items import (
    Selection,
    UnknownChoice,
    first_sentences,
    plan_items,
)
from cantata_models.solo.training.evaluation.pace import measure_pace
from cantata_models.solo.training.evaluation.report import put_between_markers, report
from cantata_models.solo.training.evaluation.results import (
    Bench,
    Result,
    measure_all,
    weights_digest,
)
from cantata_models.solo.training.evaluation.short import BASELINE, BASELINE_FILE, make_baseline
from cantata_models.solo.training.evaluation.spectrogram import draw
from cantata_models.solo.training.evaluation.summary import Summary, summarize
from cantata_models.solo.training.evaluation.synthesis import SoloSynthesizer

MODEL_CARD = Path(__file__).parents[2] / "MODEL_CARD.md"
PICTURES = Path(__file__).parents[5] / "docs" / "voice"
SAMPLE_PEAK = 0.8
COMPRESSION = 0.85
"""Setting of libsndfile's MP3 encoder, 0 (large) to 1 (small): about 48 kbit/s."""
logger = logging.getLogger(__name__)
SUMMARY = TypeAdapter(Summary)
FIGURES_FILE = "figures.json"
REPORT_FILE = "report.md"
ALL = Selection()


def write_sample(samples: Samples, path: Path) -> None:
    """Writes mono sound at 24 kHz as MP3."""
    loud = samples * (SAMPLE_PEAK / max(float(abs(samples).max()), 1e-6))
    soundfile.write(
        path, loud, SAMPLE_RATE, format="MP3", subtype="MPEG_LAYER_III",
        compression_level=COMPRESSION,
    )  # fmt: skip


def publish(
    summary: Summary, results: Sequence[Result], figures: bytes, weights: Path, folder: Path
) -> None:
    """Writes the card's tables, the baseline next to the weights, and docs/voice."""
    put_between_markers(MODEL_CARD, report(summary))
    baseline = make_baseline(weights_digest(weights), results)
    BASELINE_FILE.write_bytes(BASELINE.dump_json(baseline, indent=1) + b"\n")
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "figures.json").write_bytes(figures)
    text = first_sentences("plain", 1)[0].text
    bench = Bench(weights, folder)
    readings = {
        item.voice: (bench.reading(item.voice, text), bench.say(item.voice, text))
        for item in summary.voices
    }
    draw(readings, text, PICTURES / "spectrogram.png")
    for voice, (_, samples) in readings.items():
        write_sample(samples, PICTURES / f"{voice}.mp3")


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
    paces = measure_pace(SoloSynthesizer.load(weights), items)
    summary = summarize(weights_digest(weights), results, paces)
    figures = SUMMARY.dump_json(summary, indent=2) + b"\n"
    text = report(summary)
    (folder / FIGURES_FILE).write_bytes(figures)
    (folder / REPORT_FILE).write_text(text)
    logger.info("figures and report are in %s", folder)
    if publishing:
        publish(summary, results, figures, weights, folder)
    return summary
