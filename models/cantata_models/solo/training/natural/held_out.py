"""Sentences that no training hears, read by the teachers: what the codec is judged on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cantata_bench.voice_quality.run import read_sentences
from cantata_models.solo.training.natural.generate import read_aloud
from cantata_models.solo.training.natural.packages import read_styles
from cantata_models.solo.training.natural.shards import AnnotatedSpeech, read_shard, write_shard
from cantata_models.solo.training.natural.teachers import (
    HibariTeacher,
    KokoroTeacher,
    ScriptLine,
    SpeechTeacher,
    TeachingVoice,
)
from cantata_models.solo.training.natural.voices import (
    HEART,
    HELD_OUT_VOICES,
    STOCK,
    find_voice,
)

HEART_STEP = 3
"""`heart` reads each sentence of so many, all other voices each of ten."""
OTHERS_STEP = 10


def write_held_out(packages: Path, folder: Path) -> None:
    """Writes `heart.npz`, `stock.npz` and `strangers.npz` where they are missing.

    Raises:
        PackageMissing: a teacher is not there.
    """
    texts = [one.text for one in read_sentences(None)]
    if not (folder / "heart.npz").exists():
        write_shard(folder / "heart.npz", _read(HibariTeacher(), HEART, texts[::HEART_STEP]))
    groups = {"stock": STOCK, "strangers": HELD_OUT_VOICES}
    missing = [name for name in groups if not (folder / f"{name}.npz").exists()]
    if not missing:
        return
    teacher, styles = KokoroTeacher(packages), read_styles(packages)
    for group in missing:
        # Sentence by sentence, so that the first few of a group are of all its voices.
        read = [
            _read(teacher, find_voice(name, styles), texts[place::OTHERS_STEP])
            for place, name in enumerate(groups[group])
        ]
        write_shard(
            folder / f"{group}.npz", [one for row in zip(*read, strict=True) for one in row]
        )


def _read(teacher: SpeechTeacher, voice: TeachingVoice, texts: list[str]) -> list[AnnotatedSpeech]:
    spoken = []
    for seed, text in enumerate(texts):
        for phones, said in read_aloud(text, voice.british):
            spoken.append(teacher.read(voice, ScriptLine(said, phones, 1.0, seed)))
    return spoken


def read_held_out(folder: Path) -> Mapping[str, list[AnnotatedSpeech]]:
    """The readings by group, those that are there."""
    return {path.stem: read_shard(path) for path in sorted(folder.glob("*.npz"))}
