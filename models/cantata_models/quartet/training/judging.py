"""Sentences that no training hears, read by the teacher and by the network; judges listen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from cantata_bench.voice_quality.judges import (
    DistillMos,
    SpeakerJudge,
    Whisper,
    check_installed,
)
from cantata_bench.voice_quality.measures import count_errors, prepare
from cantata_bench.voice_quality.run import read_sentences
from cantata_layers.harmonic_vocoder import SAMPLE_RATE, stream_noise, synthesize
from cantata_layers.speaker_features import SPEAKER_SIZE, speaker_vector
from cantata_models.quartet.network import FRAMES_PER_COUNT, QuartetNetwork, QuartetSpeaker
from cantata_models.quartet.spectrum_stream import SpectrumInput
from cantata_models.quartet.training.bank import INT16_SCALE, SpokenBy
from cantata_models.quartet.training.generate import read_aloud
from cantata_models.quartet.training.shards import read_shard, write_shard
from cantata_models.quartet.training.teachers import (
    STOCK,
    KokoroTeacher,
    ScriptLine,
    list_followed_voices,
    list_stock_voices,
)
from cantata_models.quartet.voice import BLOCKS, TAIL_FRAMES, PlannedSentence, plan_sentence

STEP = 10
"""Each stock voice reads one sentence of so many."""
CLONE_TEXTS = 4
"""Sentences of each other voice, which no other of them reads."""
HELD_OUT_FILE, HELD_OUT_CLONES_FILE = "held_out.npz", "held_out_clones.npz"

Floats = npt.NDArray[np.float32]
HeldOut = Sequence[SpokenBy]
"""Sentences as the teacher spoke them."""


def write_held_out(packages: Path, folder: Path) -> None:
    """Writes `HELD_OUT_FILE` and `HELD_OUT_CLONES_FILE` if they are missing.

    Raises:
        PackageMissing: the teacher is not there.
    """
    texts = [one.text for one in read_sentences(None)]
    stock, followed = list_stock_voices(packages), list_followed_voices(packages).held_out
    plans = {
        HELD_OUT_FILE: [(voice, texts[place::STEP]) for place, voice in enumerate(stock)],
        HELD_OUT_CLONES_FILE: [
            (voice, texts[place * CLONE_TEXTS :][:CLONE_TEXTS])
            for place, voice in enumerate(followed)
        ],
    }
    missing = {name: plan for name, plan in plans.items() if not (folder / name).exists()}
    teacher = KokoroTeacher(packages) if missing else None
    for name, plan in missing.items():
        assert teacher is not None
        readings = [
            teacher.read(voice, ScriptLine(said, phones, 1.0))
            for voice, chosen in plan
            for text in chosen
            for phones, said in read_aloud(text, voice.british)
        ]
        write_shard(folder / name, readings)


def read_held_out(path: Path) -> HeldOut:
    """Of the stock voices.

    Raises:
        FileNotFoundError: it has not been written.
    """
    silent = np.zeros(SPEAKER_SIZE, np.float32)
    places = [(STOCK.index(one.voice), one) for one in read_shard(path)]
    return [SpokenBy(one, place, place, silent) for place, one in places]


def read_held_out_clones(path: Path) -> HeldOut:
    """Of voices that were never trained on: the first recording of each says who speaks.

    Raises:
        FileNotFoundError: it has not been written.
    """
    heard = dict[str, Floats]()
    drawn = list[SpokenBy]()
    for one in read_shard(path):
        samples = one.samples.astype(np.float32) / np.float32(INT16_SCALE)
        if one.voice not in heard:
            heard[one.voice] = speaker_vector(samples, SAMPLE_RATE)
        else:
            drawn.append(SpokenBy(one, -1, -1, heard[one.voice]))
    return drawn


def find_speaker(network: QuartetNetwork, one: SpokenBy) -> QuartetSpeaker:
    """Return who says a held-out sentence."""
    return network.find_speaker(one.features if one.speaker < 0 else one.speaker)


@torch.inference_mode()
def copy_prosody(network: QuartetNetwork, one: SpokenBy) -> PlannedSentence:
    """A sentence with the teacher's own durations, pitch and energy."""
    spoken, speaker = one.spoken, find_speaker(network, one)
    phones = torch.from_numpy(spoken.phones.astype(np.int64))
    counts = torch.from_numpy(spoken.durations.astype(np.int64)) * FRAMES_PER_COUNT
    encoded = network.spectrum.encode(phones[None], speaker.spectrum).repeat_interleave(counts, 1)
    pitch, energy = (torch.from_numpy(one)[None] for one in (spoken.pitch, spoken.energy))
    inputs = SpectrumInput(encoded, pitch, energy, speaker.spectrum)
    return PlannedSentence(network, inputs, spoken.durations.astype(np.float32), TAIL_FRAMES)


def plan_speech_of(network: QuartetNetwork, one: SpokenBy) -> PlannedSentence:
    """A sentence with the network's own durations, pitch and energy."""
    phones = one.spoken.phones.astype(np.int64)
    return plan_sentence(network, phones, find_speaker(network, one), 1.0)


def speak(sentence: PlannedSentence) -> Floats:
    """Speak a held-out sentence; returns [N] samples."""
    return np.concatenate(list(synthesize(sentence.predict_spectra(), stream_noise(0), BLOCKS)))


class VoiceJudge:
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
        return self._judge(
            [(one.spoken.samples / scale).astype(np.float32) for one in self._held_out]
        )

    def judge_copies(self, network: QuartetNetwork, max_sentences: int) -> dict[str, float]:
        """Judges the spectra alone: the prosody is the teacher's.

        Args:
            network: whose spectrum predictor is judged.
            max_sentences: sentences of each voice.

        Returns:
            `mos_VOICE` from 1 to 5, and `wer_VOICE` in percent.
        """
        chosen = self._pick(max_sentences)
        return self._judge([speak(copy_prosody(network, one)) if one else None for one in chosen])

    def judge_speech(self, network: QuartetNetwork, max_sentences: int) -> dict[str, float]:
        """Judges the whole network; otherwise as `judge_copies`."""
        chosen = self._pick(max_sentences)
        return self._judge([speak(plan_speech_of(network, one)) if one else None for one in chosen])

    def _pick(self, max_sentences: int) -> list[SpokenBy | None]:
        seen, picked = Counter[str](), list[SpokenBy | None]()
        for one in self._held_out:
            seen[one.spoken.voice] += 1
            picked.append(one if seen[one.spoken.voice] <= max_sentences else None)
        return picked

    def _judge(self, sounds: Sequence[Floats | None]) -> dict[str, float]:
        ratings, counts = dict[str, list[float]](), dict[str, list[tuple[int, int]]]()
        for one, sound in zip(self._held_out, sounds, strict=True):
            if sound is None:
                continue
            spoken = one.spoken
            heard = prepare(sound, SAMPLE_RATE)
            ratings.setdefault(spoken.voice, []).append(self._mos.rate(heard))
            counted = count_errors(spoken.text, self._whisper.transcribe(heard))
            counts.setdefault(spoken.voice, []).append(counted)
        figures = {f"mos_{voice}": float(np.mean(found)) for voice, found in ratings.items()}
        for voice, found in counts.items():
            words, wrong = (sum(values) for values in zip(*found, strict=True))
            figures[f"wer_{voice}"] = 100 * wrong / words
        return {name: round(value, 3) for name, value in figures.items()}


class CloneJudge:
    """How natural clones are, how well they are understood, and how like the speaker they are.

    Args:
        held_out: what is said, by voices that are known by a recording.

    Raises:
        ConfigError: the judges are not installed.
    """

    def __init__(self, held_out: HeldOut) -> None:
        check_installed()
        self._held_out = held_out
        self._mos, self._whisper, self._encoder = DistillMos(), Whisper(), SpeakerJudge()
        said = dict[str, list[Floats]]()
        for one in held_out:
            samples = (one.spoken.samples / np.float32(INT16_SCALE)).astype(np.float32)
            said.setdefault(one.spoken.voice, []).append(samples)
        self._speakers = {voice: self._average(sounds) for voice, sounds in said.items()}

    def judge(self, network: QuartetNetwork) -> dict[str, float]:
        """Returns `mos` from 1 to 5, `wer` in percent, `likeness` to the speaker's own recordings
        from 0 to 1, `likeness_other` to those of the other voices, and `nearest`: the share of
        clones that are most like their own speaker."""
        ratings, counts, own, others = [], [], [], []
        for one in self._held_out:
            sound = speak(plan_speech_of(network, one))
            heard = prepare(sound, SAMPLE_RATE)
            ratings.append(self._mos.rate(heard))
            counts.append(count_errors(one.spoken.text, self._whisper.transcribe(heard)))
            vector = self._average([sound])
            likeness = {name: float(vector @ other) for name, other in self._speakers.items()}
            own.append(likeness.pop(one.spoken.voice))
            others.append(list(likeness.values()))
        words, wrong = (sum(values) for values in zip(*counts, strict=True))
        figures = {
            "mos": float(np.mean(ratings)),
            "wer": 100 * wrong / words,
            "likeness": float(np.mean(own)),
            "likeness_other": float(np.mean(others)),
            "nearest": float(np.mean(np.array(own) > np.max(others, axis=1))),
        }
        return {name: round(value, 3) for name, value in figures.items()}

    def _average(self, sounds: Sequence[Floats]) -> Floats:
        mean = np.mean([self._encoder.embed(prepare(one, SAMPLE_RATE)) for one in sounds], axis=0)
        vector: Floats = mean / np.linalg.norm(mean)
        return vector
