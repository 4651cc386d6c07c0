"""Whether questions rise where the teacher's do: both read the same questions and statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cantata_bench.voice_quality.measures import (
    EvalSentence,
    measure_ending,
    prepare,
    track_pitch,
)
from cantata_bench.voice_quality.run import read_sentences
from cantata_layers.harmonic_vocoder import SAMPLE_RATE
from cantata_layers.speaker_features import SPEAKER_SIZE
from cantata_models.quartet.network import QuartetNetwork
from cantata_models.quartet.training.bank import INT16_SCALE, SpokenBy
from cantata_models.quartet.training.generate import read_aloud
from cantata_models.quartet.training.judging import plan_speech_of, speak
from cantata_models.quartet.training.shards import read_shard, write_shard
from cantata_models.quartet.training.teachers import (
    STOCK,
    KokoroTeacher,
    ScriptLine,
    list_stock_voices,
)

QUESTIONS_FILE = "held_out_questions.npz"
KINDS = ("yes-no", "statement")
RISES = 1.0
"""Semitones above the mean ending of the voice's statements from which a question rises."""

Floats = npt.NDArray[np.float32]
Rises = Mapping[str, npt.NDArray[np.float64]]


def write_questions(packages: Path, folder: Path) -> None:
    """Have the teacher's stock voices read all questions for yes or no, and all statements, into
    `QUESTIONS_FILE`, unless it is there.

    Raises:
        PackageMissing: the teacher is not there.
    """
    if (folder / QUESTIONS_FILE).exists():
        return
    teacher = KokoroTeacher(packages)
    readings = [
        teacher.read(voice, ScriptLine(said, phones, 1.0))
        for voice in list_stock_voices(packages)
        for sentence in _list_sentences()
        for phones, said in read_aloud(sentence.text, voice.british)
    ]
    write_shard(folder / QUESTIONS_FILE, readings)


def judge_questions(network: QuartetNetwork, folder: Path) -> dict[str, float]:
    """Have the network say what the teacher reads in `QUESTIONS_FILE`, and compare the two.

    Args:
        network: whose prosody is judged.
        folder: has that file.

    Returns:
        The figures of `compare_rises`.

    Raises:
        FileNotFoundError: the questions have not been read yet.
    """
    silent = np.zeros(SPEAKER_SIZE, np.float32)
    readings = read_shard(folder / QUESTIONS_FILE)
    places = [STOCK.index(one.voice) for one in readings]
    named = [SpokenBy(one, at, at, silent) for one, at in zip(readings, places, strict=True)]
    kinds = [sentence.kind for _ in STOCK for sentence in _list_sentences()]
    voices, scale = [one.voice for one in readings], np.float32(INT16_SCALE)
    taught = [(one.samples / scale).astype(np.float32) for one in readings]
    spoken = [speak(plan_speech_of(network, one)) for one in named]
    return compare_rises(measure_rises(voices, kinds, taught), measure_rises(voices, kinds, spoken))


def measure_rises(voices: Sequence[str], kinds: Sequence[str], sounds: Sequence[Floats]) -> Rises:
    """Measure how much higher questions end than statements.

    Args:
        voices: who says each sentence.
        kinds: one of `KINDS` for each.
        sounds: [N] samples of each.

    Returns:
        For each voice its questions, [Q] semitones above the mean ending of its statements.
    """
    endings = defaultdict[tuple[str, str], list[float]](list)
    for voice, kind, sound in zip(voices, kinds, sounds, strict=True):
        pitch = track_pitch(prepare(sound, SAMPLE_RATE))
        endings[voice, kind].append(measure_ending(pitch))
    question, statement = KINDS
    return {
        voice: np.array(endings[voice, question]) - np.mean(endings[voice, statement])
        for voice in dict.fromkeys(voices)
    }


def compare_rises(theirs: Rises, ours: Rises) -> dict[str, float]:
    """Compare how the teacher and the network end the same questions.

    Returns:
        For each voice `rise_VOICE` and `rise_teacher_VOICE`, the mean in semitones.
        `rising_teacher`: the share of all questions that rise when the teacher reads them, by
        `RISES` at least. `rising`: the share of these that rise here too. `correlation`, of the
        endings of all questions.
    """
    figures = {f"rise_{voice}": float(rises.mean()) for voice, rises in ours.items()}
    figures |= {f"rise_teacher_{voice}": float(rises.mean()) for voice, rises in theirs.items()}
    there, here = (np.concatenate(list(rises.values())) for rises in (theirs, ours))
    rising = there >= RISES
    figures["rising_teacher"] = float(rising.mean())
    figures["rising"] = float((here[rising] >= RISES).mean())
    figures["correlation"] = float(np.corrcoef(here, there)[0, 1])
    return {name: round(value, 3) for name, value in figures.items()}


def _list_sentences() -> list[EvalSentence]:
    return [one for one in read_sentences(None) if one.kind in KINDS]
