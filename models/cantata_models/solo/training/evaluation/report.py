"""The figures as Markdown tables, for the model card."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cantata_models.solo.training.evaluation.judge import Score
from cantata_models.solo.training.evaluation.likeness import NearestTeacher, Prompting
from cantata_models.solo.training.evaluation.summary import SentenceFigures, SpeedFigures, Summary

BEGIN = "<!-- figures: written by `make eval-voice PUBLISH=1` -->"
END = "<!-- end of figures -->"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    rows = [list(head), ["-"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace("| - ", "|-") + "\n"


def rates(found: Score) -> str:
    """Returns "WER / CER"."""
    return f"{found.wer:.1f} / {found.cer:.1f}"


def percent(share: float) -> str:
    """Returns a share as a whole percentage."""
    return f"{100 * share:.0f}%"


def columns(summary: Summary) -> tuple[list[str], list[SentenceFigures]]:
    """Returns one column per voice and one for all voices."""
    names = [item.voice for item in summary.voices]
    return [*names, "all"], [*(item.overall for item in summary.voices), summary.overall]


def voice_table(summary: Summary) -> str:
    """Intelligibility, likeness, duration and speed, one column per voice."""
    names, found = columns(summary)
    lines = [
        ["teacher's own reading, WER / CER", *(rates(f.teacher) for f in found)],
        ["encoded and decoded (the ceiling)", *(rates(f.codec) for f in found)],
        ["**text to speech**", *(f"**{rates(f.speech)}**" for f in found)],
        ["distortion against the teacher, dB", *(f"{f.distortion_db:.2f}" for f in found)],
        ["duration over the teacher's", *(f"{f.duration_ratio:.2f}" for f in found)],
        ["durations within 15%", *(percent(f.duration_close) for f in found)],
        ["first / last phone lost", *(f"{f.first_missing} / {f.last_missing}" for f in found)],
        ["peak; clipped samples", *(f"{f.peak:.2f}; {f.clipped}" for f in found)],
        pace_line("talker, s per s of speech", [v.pace.talker for v in summary.voices]),
        pace_line("decoder frame by frame, s per s", [v.pace.decoder for v in summary.voices]),
    ]
    return table(["", *names], lines)


def pace_line(name: str, paces: Sequence[float]) -> list[str]:
    """The pace of every voice, and the mean."""
    return [name, *(f"{pace:.3f}" for pace in (*paces, np.mean(paces)))]


def group_table(summary: Summary) -> str:
    """WER of the speech and of the teacher, one column per voice and one for all voices."""
    names = [item.voice for item in summary.voices]
    groups = dict.fromkeys(group for item in summary.voices for group in item.groups)
    lines = []
    for group in groups:
        found = [item.groups[group] for item in summary.voices]
        wers = [(f.speech.wer, f.teacher.wer) for f in found]
        overall = np.average(wers, axis=0, weights=[f.speech.words for f in found])
        lines.append([group, *(f"{ours:.1f} ({theirs:.1f})" for ours, theirs in (*wers, overall))])
    return table(["WER (teacher's)", *names, "all"], lines)


def speed_table(speeds: Sequence[SpeedFigures]) -> str:
    """WER of the speech and of the teacher at the same rate, and the duration."""
    names = list(dict.fromkeys(found.voice for found in speeds))
    lines = [
        [
            f"{speed:g}",
            *(
                f"{f.speech.wer:.1f} ({f.teacher.wer:.1f}), {f.duration_ratio:.2f}"
                for f in speeds
                if f.speed == speed
            ),
        ]
        for speed in sorted({found.speed for found in speeds})
    ]
    return table(["speed", *names], lines)


def speaker_table(found: NearestTeacher) -> str:
    """The nearest teachers of each voice's sentences."""
    names = list(found.confusion)
    lines = [
        [name, *(str(near.get(other, 0)) for other in names)]
        for name, near in found.confusion.items()
    ]
    return table(["speaks \\ nearest teacher", *names], lines)


def prompt_table(found: Prompting) -> str:
    """Speakers unseen in training: following a recording against the nearest stock voice."""
    lines = [
        [
            one.speaker,
            f"{one.distance:.2f}",
            f"{one.stock_distance:.2f} ({one.stock_voice})",
            f"{one.pitch_semitones:.1f}",
            f"{one.stock_pitch_semitones:.1f}",
        ]
        for one in found.speakers
    ]
    head = ["speaker", "distance", "nearest stock voice's", "pitch off by, semitones", "stock's"]
    return table(head, lines)


def seam_table(summary: Summary) -> str:
    """Chunk boundaries against the interior, one column per voice."""
    names, found = columns(summary)
    lines = [
        ["level step at boundaries, dB", *(f"{f.step_db:.1f}" for f in found)],
        ["inside", *(f"{f.interior_step_db:.1f}" for f in found)],
        ["click at boundaries", *(f"{f.click:.2f}" for f in found)],
        ["inside", *(f"{f.interior_click:.2f}" for f in found)],
        ["broken boundaries", *(f"{f.broken_boundaries} of {f.boundaries}" for f in found)],
    ]
    return table(["", *names], lines)


def report(summary: Summary) -> str:
    """Returns the tables, each introduced by a sentence."""
    sentences = summary.overall.speech.sentences // max(len(summary.voices), 1)
    parts = [
        f"{sentences} hand-written sentences a voice, none of them in the training text, judged by "
        "pocketsphinx with\nits own language model; percent.\n\n" + voice_table(summary),
        "By group; the teacher's own WER in brackets:\n\n" + group_table(summary),
    ]
    if summary.speeds:
        parts.append(
            "At other speeds: WER, the teacher's at the same rate, and the duration times the "
            "speed over the usual\nduration (1 is exact):\n\n" + speed_table(summary.speeds)
        )
    known = summary.recognition
    parts.append(
        "Sentences by the teacher that they sound most like (spectrum and pitch, no part of the "
        f"synthesizer):\n{percent(known.accuracy)} right, of the teachers' own "
        f"{percent(known.teacher_accuracy)}.\n\n" + speaker_table(known)
    )
    if summary.prompting is not None:
        followed = summary.prompting
        parts.append(
            f"{len(followed.speakers)} speakers never trained on, followed from one sentence: "
            f"nearer than any stock voice for\n{percent(followed.share_won)}, pitch off by "
            f"{followed.pitch_semitones:.1f} semitones on average (nearest stock voice: "
            f"{followed.stock_pitch_semitones:.1f}).\n\n" + prompt_table(followed)
        )
    parts.append(
        "Boundaries of the 80 ms chunks, decoded one by one; 95th percentiles:\n\n"
        + seam_table(summary)
    )
    return "\n".join(parts)


def put_between_markers(path: Path, text: str) -> None:
    """Replaces the text between the two markers of a file.

    Raises:
        ValueError: a marker is missing.
    """
    whole = path.read_text()
    if BEGIN not in whole or END not in whole:
        raise ValueError(f"{path} needs the lines {BEGIN!r} and {END!r}")
    before, after = whole.split(BEGIN)[0], whole.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{text}{END}{after}")
