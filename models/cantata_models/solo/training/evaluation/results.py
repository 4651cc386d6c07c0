"""Measures the items in parallel and never measures one twice.

Every result is one line of a file. The file's name identifies the weights and the measuring code,
so a second run reads the results and an interrupted run resumes. The measured teachers' readings
are stored next to it and stay valid for other weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import soundfile
import torch
from pydantic import TypeAdapter

from cantata_layers.training.progress import tracked
from cantata_models.solo.training.audio import speak, trim
from cantata_models.solo.training.evaluation.acoustics import SAMPLE_RATE, Samples
from cantata_models.solo.training.evaluation.items import EvaluatedSentence
from cantata_models.solo.training.evaluation.judge import Judge
from cantata_models.solo.training.evaluation.measures import (
    Likeness,
    RecordingMeasures,
    compare,
    measure,
)
from cantata_models.solo.training.evaluation.synthesis import SoloSynthesizer
from cantata_models.solo.training.speakers import SPEAKERS

DIGEST_SIZE = 12
SOLO = Path(__file__).parents[2]
SHARED_LAYERS = SOLO.parents[1] / "cantata_layers"
HEARING = ("judge", "acoustics", "warping", "edges", "seams", "timbre", "measures")
"""Modules of this package that determine how a recording is measured."""


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements of one item."""

    item: EvaluatedSentence
    teacher: RecordingMeasures
    speech: RecordingMeasures
    likeness: Likeness
    codec: RecordingMeasures | None
    """The teacher's reading, encoded and decoded; only for stock voices at normal speed."""


HEARD = TypeAdapter(RecordingMeasures)
RESULT = TypeAdapter(Result)


def digest(paths: Sequence[Path]) -> str:
    """Returns a short digest of these files' contents."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()[:DIGEST_SIZE]


def weights_digest(weights: Path) -> str:
    """Returns a short digest of a checkpoint folder's weights and configuration."""
    return digest([*weights.glob("*.safetensors"), weights / "config.json"])


def hearing_digest() -> str:
    """Returns a short digest of the code that measures a recording."""
    return digest([Path(__file__).with_name(f"{name}.py") for name in HEARING])


def code_digest() -> str:
    """Returns a short digest of all code that affects a result."""
    shared = (SHARED_LAYERS / name for name in ("speaker_features.py", "mel_filters.py"))
    own = Path(__file__).with_name("synthesis.py")
    return digest([own, *shared, *(SOLO / "networks").glob("*.py")])


class Bench:
    """Everything a process needs to measure items."""

    def __init__(self, weights: Path, folder: Path) -> None:
        self._synthesizer = SoloSynthesizer.load(weights)
        self._judge = Judge()
        self._readings = folder / "teachers"
        self._readings.mkdir(parents=True, exist_ok=True)
        self._hearing = hearing_digest()

    def _reading_path(self, speaker: str, text: str, rate: float) -> Path:
        who = SPEAKERS[speaker]
        key = hashlib.sha256(f"{who}|{rate}|{text}".encode()).hexdigest()[:DIGEST_SIZE]
        return self._readings / f"{speaker}.{key}.wav"

    def reading(self, speaker: str, text: str, rate: float = 1.0) -> Samples:
        """Returns a teacher's or pseudo-speaker's reading, trimmed and scaled to a peak of 0.7."""
        path = self._reading_path(speaker, text, rate)
        if not path.exists():
            part = path.with_suffix(".part")
            sound = trim(speak(text, SPEAKERS[speaker], rate))
            soundfile.write(part, sound, SAMPLE_RATE, format="WAV", subtype="PCM_16")
            part.replace(path)
        samples: Samples = soundfile.read(path, dtype="float32")[0]
        return samples

    def say(self, voice: str, text: str) -> Samples:
        """Synthesizes text in a stock voice."""
        return self._synthesizer.say(text, self._synthesizer.stock_speaker(voice)).samples

    def teacher(self, item: EvaluatedSentence, samples: Samples) -> RecordingMeasures:
        """Measures a teacher's reading; the result serves all weights."""
        sound = self._reading_path(item.speaker, item.text, item.speed)
        path = sound.with_suffix(f".{self._hearing}.json")
        if not path.exists():
            path.write_bytes(HEARD.dump_json(measure(samples, self._judge)))
        return HEARD.validate_json(path.read_bytes())

    def measure(self, item: EvaluatedSentence) -> Result:
        """Synthesizes an item and measures it."""
        voice = self._synthesizer
        reading = self.reading(item.speaker, item.text, item.speed)
        if item.reference:
            speaker = voice.referred_speaker(self.reading(item.speaker, item.reference))
        else:
            speaker = voice.stock_speaker(item.speaker)
        samples = voice.say(item.text, speaker, item.speed).samples
        codec = None
        if not item.reference and item.speed == 1.0:
            codec = measure(voice.through_codec(reading), self._judge)
        return Result(
            item=item,
            teacher=self.teacher(item, reading),
            speech=measure(samples, self._judge),
            likeness=compare(samples, reading),
            codec=codec,
        )


def read_results(path: Path) -> dict[EvaluatedSentence, Result]:
    """Reads the file written by `measure_all`; skips a line cut off by an interruption."""
    if not path.exists():
        return {}
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    found = (RESULT.validate_json(line) for line in whole.splitlines())
    return {result.item: result for result in found}


_bench: Bench | None = None
"""The bench of this worker process."""


def _start_worker(weights: Path, folder: Path) -> None:
    global _bench
    torch.set_num_threads(1)
    _bench = Bench(weights, folder)


def _measure(item: EvaluatedSentence) -> Result:
    assert _bench is not None
    return _bench.measure(item)


def results_path(weights: Path, folder: Path) -> Path:
    """Returns the results file for these weights and the current code."""
    name = f"results-{weights_digest(weights)}-{code_digest()}-{hearing_digest()}.jsonl"
    return folder / name


def measure_all(
    items: Sequence[EvaluatedSentence], weights: Path, folder: Path, workers: int
) -> list[Result]:
    """Measures the items missing from `folder`, stores each as it finishes, and returns all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = results_path(weights, folder)
    known = read_results(path)
    missing = [item for item in items if item not in known]
    if missing:
        # Spawned: torch's threads do not survive a fork.
        context = get_context("spawn")
        with (
            ProcessPoolExecutor(workers, context, _start_worker, (weights, folder)) as pool,
            path.open("a") as out,
        ):
            started = [pool.submit(_measure, item) for item in missing]
            try:
                for future in tracked(as_completed(started), len(missing), "evaluate"):
                    result = future.result()
                    known[result.item] = result
                    out.write(RESULT.dump_json(result).decode() + "\n")
                    out.flush()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    return [known[item] for item in items]
