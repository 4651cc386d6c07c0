"""Voices read sentences through a server, judges listen, and a table comes out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

import httpx
import numpy as np
import soundfile
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError
from cantata_bench.server import running_server
from cantata_bench.tables import table
from cantata_bench.voice_quality.judges import check_installed
from cantata_bench.voice_quality.measures import (
    EvalResult,
    EvalSentence,
    JudgePanel,
    VoiceMeans,
    summarize,
)

_DEADLINE_S = 120.0
"""For one sentence, on a slow machine."""


def read_sentences(file: Path | None) -> tuple[EvalSentence, ...]:
    """A file of kinds and sentences; None: those of this package, which no voice here was trained
    on.

    Raises:
        ConfigError: a line has no tab, or there is none.
    """
    source = files(__package__ or "") / "sentences.tsv" if file is None else file
    made = []
    for number, line in enumerate(source.read_text("utf-8").splitlines(), 1):
        kind, tab, text = line.partition("\t")
        if not tab or not text.strip():
            raise ConfigError(f"{source}, line {number}: no kind, tab and sentence")
        made.append(EvalSentence(kind, text.strip()))
    if not made:
        raise ConfigError(f"{source} has no sentences")
    return tuple(made)


def judge_models(
    models: Sequence[str],
    voices: Sequence[str],
    sentences: Sequence[EvalSentence],
    folder: Path,
    tell: Callable[[str], None],
) -> list[VoiceMeans]:
    """Serve one model after the other, and judge its voices.

    Args:
        models: names or checkpoint folders.
        voices: only these; empty: all.
        sentences: at least one.
        folder: gets the recordings as FLAC, each server's log, and `judged.jsonl`.
        tell: gets a line for each voice.

    Raises:
        ConfigError: the judges are not installed, or no model has such a voice.
        RuntimeError: a server did not start.
    """
    check_installed()
    panel, found = JudgePanel(), list[VoiceMeans]()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "judged.jsonl").open("w", encoding="utf-8") as results:
        for model in models:
            name = Path(model).name
            log = folder / f"{name}.log"
            with running_server(log, options=["--model", model]) as server:
                for voice in _list_voices(server.url, voices):
                    judged = list[EvalResult]()
                    for number, sentence in enumerate(sentences):
                        samples, rate_hz = _read_aloud(server.url, voice, sentence.text)
                        place = folder / name / voice / f"{number:03d}.flac"
                        place.parent.mkdir(parents=True, exist_ok=True)
                        soundfile.write(place, samples, rate_hz)
                        judged.append(panel.judge(sentence, samples, rate_hz))
                        line = {"model": name, "voice": voice, **asdict(judged[-1])}
                        results.write(json.dumps({**line, "text": sentence.text}) + "\n")
                    found.append(summarize(name, voice, judged))
                    tell(_format_row(found[-1]))
    if not found:
        raise ConfigError(f"no model here has a voice of {list(voices)}")
    return found


def _list_voices(url: str, wanted: Sequence[str]) -> list[str]:
    offered = [one["id"] for one in httpx.get(f"{url}/v1/audio/voices").json()["voices"]]
    return [voice for voice in offered if not wanted or voice in wanted]


def _read_aloud(url: str, voice: str, text: str) -> tuple[NDArray[np.float32], int]:
    """[N] mono samples and their rate."""
    body = {"input": text, "voice": voice, "response_format": "wav", "seed": 0}
    answer = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=_DEADLINE_S)
    if answer.status_code != httpx.codes.OK:
        raise RuntimeError(f"voice {voice}: {text!r} got {answer.status_code}: {answer.text}")
    samples, rate_hz = soundfile.read(io.BytesIO(answer.content), dtype="float32", always_2d=True)
    return samples.mean(axis=1), rate_hz


def make_table(figures: Sequence[VoiceMeans]) -> str:
    """Markdown: one row for each voice, and what the columns mean."""
    head = [
        "model",
        "voice",
        "DistillMOS",
        "DNSMOS",
        "WER",
        "pitch moves by",
        "questions end higher by",
    ]
    lines = [
        [
            one.model,
            one.voice,
            f"{one.mos:.2f}",
            f"{one.overall:.2f}",
            f"{one.wer:.1f}%",
            f"{one.spread:.1f}",
            f"{one.rise:.1f}",
        ]
        for one in figures
    ]
    return (
        f"{figures[0].sentences} sentences a voice. DistillMOS and DNSMOS (OVRL) rate the quality "
        "from 1 to 5. The word error rate is Whisper tiny.en's. Pitch moves by so many semitones "
        "(standard deviation), and questions for yes or no end so much higher than statements "
        "(the highest pitch of the last 0.3 s)."
        "\n\n" + table(head, lines)
    )


def _format_row(one: VoiceMeans) -> str:
    return f"{one.model} {one.voice}: DistillMOS {one.mos:.2f}, WER {one.wer:.1f}%"
