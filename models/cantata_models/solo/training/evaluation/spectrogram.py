"""Draws spectrograms of one sentence: for each voice, the teacher above and the voice below."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from PIL import Image

from cantata_models.solo.networks.codec_encoder import LogMel
from cantata_models.solo.training.evaluation.acoustics import (
    FFT_SIZE,
    HOP,
    SAMPLE_RATE,
    Rows,
    Samples,
)

matplotlib.use("Agg")
from matplotlib import pyplot

INK, PAPER, FAINT = "#1d2433", "#fbfaf7", "#8a8f9c"
MELS = 96
RANGE_DB = 65.0
HERTZ = (250, 1000, 4000)
PALETTE = 128
"""Number of colours in the file."""
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "axes.edgecolor": PAPER,
    "figure.facecolor": PAPER,
}


def mel_decibels(samples: Samples) -> Rows:
    """[N] -> [96, H] dB relative to the loudest."""
    padded = np.pad(samples, (0, -len(samples) % HOP))
    rows = LogMel(MELS, FFT_SIZE, HOP, SAMPLE_RATE)(torch.from_numpy(padded)[None])[0]
    decibels = 20 / math.log(10) * rows.double().numpy().T
    shown: Rows = np.maximum(decibels - decibels.max(), -RANGE_DB)
    return shown


def mel_row(hertz: float) -> float:
    """Returns the row of `mel_decibels` centred on a frequency."""
    return MELS * math.log(1 + hertz / 700) / math.log(1 + SAMPLE_RATE / 2 / 700) - 0.5


def draw(readings: Mapping[str, tuple[Samples, Samples]], text: str, path: Path) -> None:
    """Writes a PNG. `readings` maps a voice to (teacher's samples, ours) of the sentence `text`."""
    longest = max(len(sound) for pair in readings.values() for sound in pair) / SAMPLE_RATE
    lines = -(-len(readings) // 2)
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(11, 3.3 * lines + 0.7), dpi=110)
        figure.text(0.055, 0.97, f"“{text}”", fontsize=14, weight="bold", va="top")
        figure.text(
            0.055, 0.925, "Mel spectrogram, teacher above, Cantata below", color=FAINT, va="top"
        )
        outer = figure.add_gridspec(
            lines, 2, left=0.055, right=0.985, top=0.86, bottom=0.06, wspace=0.1, hspace=0.25
        )
        for number, (voice, pair) in enumerate(readings.items()):
            inner = outer[number // 2, number % 2].subgridspec(2, 1, hspace=0.05)
            for place, sound in enumerate(pair):
                axes = figure.add_subplot(inner[place])
                axes.set_facecolor(matplotlib.colormaps["magma"](0.0))
                seconds = len(sound) / SAMPLE_RATE
                axes.imshow(
                    mel_decibels(sound),
                    origin="lower",
                    aspect="auto",
                    cmap="magma",
                    extent=(0, seconds, -0.5, MELS - 0.5),
                    vmin=-RANGE_DB,
                    vmax=0,
                )
                axes.set_xlim(0, longest)
                axes.set_yticks([mel_row(h) for h in HERTZ], ["250", "1k", "4k Hz"], fontsize=7)
                axes.tick_params(length=0, labelsize=7)
                if place == 0:
                    axes.set_xticks([])
                    axes.set_title(voice.capitalize(), loc="left", weight="bold", fontsize=10)
                label = "teacher" if place == 0 else voice
                axes.text(
                    0.99, 0.92, label, transform=axes.transAxes, ha="right", va="top",
                    color="white", fontsize=8, alpha=0.85,
                )  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        with Image.open(path) as picture:  # a palette needs a quarter of the space
            small = picture.convert("RGB").quantize(PALETTE)
        small.save(path, optimize=True)
        pyplot.close(figure)
