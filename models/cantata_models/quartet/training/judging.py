"""Sentences that no training hears, read by the teacher and by the network; judges listen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from cantata_bench.voice_quality.judges import DistillMos, Whisper, check_installed
from cantata_bench.voice_quality.measures import count_errors, prepare
from cantata_bench.voice_quality.run import read_sentences
from cantata_layers.harmonic_vocoder import SAMPLE_RATE, stream_noise, synthesize
from cantata_models.quartet.network import FRAMES_PER_COUNT, QuartetNetwork
from cantata_models.quartet.training.bank import INT16_SCALE
from cantata_models.quartet.training.generate import read_aloud
from cantata_models.quartet.training.shards import AnnotatedSpeech, read_shard, write_shard
from cantata_models.quartet.training.teachers import (
    STOCK,
    KokoroTeacher,
    ScriptLine,
    list_stock_voices,
)
from cantata_models.quartet.voice import BLOCKS, TAIL_FRAMES, PlannedSentence, plan_sentence

STEP = 10
"""Each voice reads one sentence of so many."""

Floats = npt.NDArray[np.float32]
HeldOut = Sequence[tuple[int, AnnotatedSpeech]]
"""Speakers, and what the teacher made of their sentences."""


def write_held_out(packages: Path, path: Path) -> None:
    """Writes the shard if it is missing.

    Raises:
        PackageMissing: the teacher is not there.
    """
    if path.exists():
        return
    teacher, texts = KokoroTeacher(packages), [one.text for one in read_sentences(None)]
    write_shard(
        path,
        [
            teacher.read(voice, ScriptLine(said, phones, 1.0))
            for place, voice in enumerate(list_stock_voices(packages))
            for text in texts[place::STEP]
            for phones, said in read_aloud(text, voice.british)
        ],
    )


def read_held_out(path: Path) -> HeldOut:
    """Raises: FileNotFoundError: it has not been written."""
    return [(STOCK.index(one.voice), one) for one in read_shard(path)]


@torch.inference_mode()
def copy_prosody(network: QuartetNetwork, voice: int, spoken: AnnotatedSpeech) -> PlannedSentence:
    """A sentence with the teacher's own durations, pitch and energy."""
    voices, phones = torch.tensor([voice]), torch.from_numpy(spoken.phones.astype(np.int64))
    counts = torch.from_numpy(spoken.durations.astype(np.int64)) * FRAMES_PER_COUNT
    encoded = network.spectrum.encode(phones[None], voices).repeat_interleave(counts, 1)
    contour = (torch.from_numpy(spoken.pitch)[None], torch.from_numpy(spoken.energy)[None])
    lasting = spoken.durations.astype(np.float32)
    return PlannedSentence(network, voices, encoded, contour, lasting, TAIL_FRAMES)


def speak(sentence: PlannedSentence) -> Floats:
    """[N] samples."""
    return np.concatenate(list(synthesize(sentence, stream_noise(0), BLOCKS)))


class SpeechJudge:
    """DistillMOS and Whisper's word errors, voice by voice.

    Args:
        held_out: what is read.

    Raises:
        ConfigError: the judges are not installed.
    """

    def __init__(self, held_out: HeldOut) -> None:
        check_installed()
        self._held_out = held_out
        self._mos, self._whisper = DistillMos(), Whisper()

    def judge_teacher(self) -> dict[str, float]:
        """The ceiling: what the judges say of the teacher. Figures as `judge_copies`'."""
        scale = np.float32(INT16_SCALE)
        return self._judge([one.samples.astype(np.float32) / scale for _, one in self._held_out])

    def judge_copies(self, network: QuartetNetwork, most: int) -> dict[str, float]:
        """Judges the spectra alone: the prosody is the teacher's.

        Args:
            network: whose spectrum predictor is judged.
            most: sentences of each voice.

        Returns:
            `mos_VOICE` from 1 to 5, and `wer_VOICE` in percent.
        """
        return self._judge(
            [speak(copy_prosody(network, *one)) if some else None for some, one in self._pick(most)]
        )

    def judge_speech(self, network: QuartetNetwork, most: int) -> dict[str, float]:
        """Judges the whole network; otherwise as `judge_copies`."""
        return self._judge(
            [
                speak(plan_sentence(network, one.phones.astype(np.int64), voice, 1.0))
                if some
                else None
                for some, (voice, one) in self._pick(most)
            ]
        )

    def _pick(self, most: int) -> list[tuple[bool, tuple[int, AnnotatedSpeech]]]:
        seen, picked = dict[int, int](), []
        for voice, one in self._held_out:
            seen[voice] = seen.get(voice, 0) + 1
            picked.append((seen[voice] <= most, (voice, one)))
        return picked

    def _judge(self, sounds: Sequence[Floats | None]) -> dict[str, float]:
        ratings, counts = dict[str, list[float]](), dict[str, list[tuple[int, int]]]()
        for (_, spoken), sound in zip(self._held_out, sounds, strict=True):
            if sound is None:
                continue
            heard = prepare(sound, SAMPLE_RATE)
            ratings.setdefault(spoken.voice, []).append(self._mos.rate(heard))
            counted = count_errors(spoken.text, self._whisper.transcribe(heard))
            counts.setdefault(spoken.voice, []).append(counted)
        figures = {f"mos_{voice}": float(np.mean(found)) for voice, found in ratings.items()}
        for voice, found in counts.items():
            words, wrong = (sum(values) for values in zip(*found, strict=True))
            figures[f"wer_{voice}"] = 100 * wrong / words
        return {name: round(value, 3) for name, value in figures.items()}
