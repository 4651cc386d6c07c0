"""The figures as text, and the pictures that go with them in docs/models/sketch.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from cantata_models.sketch.training.evaluation.gates import (
    NameScore,
    Neighbour,
    PairScore,
    Reconstruction,
)
from cantata_models.sketch.training.pictures import Pixels

DOCS = Path(__file__).parents[5] / "docs" / "models"
PAGE = DOCS / "sketch.md"
SHEET = DOCS / "sketch.png"
START = "<!-- figures: written by `make eval-picture PUBLISH=1` -->"
END = "<!-- end of figures -->"
COLUMNS = 8


@dataclass(frozen=True)
class SketchReport:
    """Everything that the evaluation measured."""

    reconstruction: Reconstruction
    reliability: float
    painted_reliability: float
    names: NameScore
    seen_pairs: PairScore
    unseen_pairs: PairScore
    neighbours: list[Neighbour]
    seconds: float


def as_text(report: SketchReport) -> str:
    """Writes the figures as Markdown tables."""
    r, n, s, u = report.reconstruction, report.names, report.seen_pairs, report.unseen_pairs
    rows = [
        ("PSNR of pictures not seen, from their code", "> 26 dB", f"{r.from_code:.1f} dB"),
        ("PSNR of pictures not seen, encoded and decoded", "> 26 dB", f"{r.round_trip:.1f} dB"),
        ("hue right, pairs held out", "> 90 %", percent(u.hue)),
        ("hue right, pairs seen", "", percent(s.hue)),
        ("kind named by the judge, seen names", "> 70 %", percent(n.first)),
        ("the same, among its first five", "", percent(n.in_five)),
        ("kind named, pairs seen (first, first five)", "", both(s)),
        ("kind named, pairs held out (first, first five)", "", both(u)),
        ("drawing nearest to the asked picture of all", "", percent(n.nearest)),
        ("PSNR between drawing and asked picture, at 32 x 32", "", f"{n.psnr:.1f} dB"),
        ("words to pixels, one thread", "< 2 s", f"{report.seconds:.2f} s"),
    ]
    table = "\n".join(f"| {what} | {gate} | {value} |" for what, gate, value in rows)
    memory = "\n".join(
        f"| {item.caption} | {item.name} | {item.psnr:.1f} |" for item in report.neighbours
    )
    real, painted = percent(report.reliability), percent(report.painted_reliability)
    return (
        f"{r.pictures} pictures were kept from the autoencoder; {n.count} seen names, {s.count} "
        f"seen and {u.count} held-out pairs were drawn once each. The judge, a classifier trained "
        f"on the real pictures alone, names the kind of {real} when they are shifted, blurred "
        f"and recoloured, and of {painted} of those truly painted in another colour.\n\n"
        f"| measure | gate | reached |\n|-|-|-|\n{table}\n\n"
        "How much is memory: the real picture nearest to a drawing, and the PSNR between them at "
        f"32 x 32 pixels.\n\n| drawn | nearest real picture | dB |\n|-|-|-|\n{memory}"
    )


def percent(value: float) -> str:
    """Writes a share."""
    return f"{100 * value:.0f} %"


def both(score: PairScore) -> str:
    """Writes the two shares of a kind."""
    return f"{percent(score.kind)}, {percent(score.kind_in_five)}"


def contact_sheet(pixels: Pixels) -> Image.Image:
    """Puts pictures `[n, 128, 128, 3]` side by side, eight a row."""
    side = pixels.shape[1]
    rows = -(-len(pixels) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * side, rows * side), "white")
    for place, picture in enumerate(pixels):
        sheet.paste(Image.fromarray(picture), (place % COLUMNS * side, place // COLUMNS * side))
    return sheet


def publish(text: str, drawn: Pixels) -> None:
    """Puts the figures between the page's markers and writes the sample pictures."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START, 1)
    _, after = rest.split(END, 1)
    PAGE.write_text(f"{before}{START}\n{text}\n{END}{after}", encoding="utf-8")
    contact_sheet(drawn).save(SHEET, optimize=True)
