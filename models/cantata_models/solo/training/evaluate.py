"""Stage evaluate: every held-out sentence in every voice, judged at three points.

"teacher" is RHVoice's own reading, "codec" the same reading encoded and decoded (the ceiling), and
"voice" what the shipped weights say from text.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import soundfile
import torch

from cantata_models.solo.checkpoint import load_codec_decoder, load_codec_encoder, load_talker
from cantata_models.solo.config import load_config
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.codec_encoder import CodecEncoder, LogMel, ResidualQuantiser
from cantata_models.solo.networks.talker import Talker
from cantata_models.solo.training.align import read_text
from cantata_models.solo.training.audio import SAMPLE_RATE, TEACHERS, speak, trim
from cantata_models.solo.training.judge import Judge, Samples, Score, mel_cepstral_distortion, score
from cantata_models.solo.training.progress import tracked
from cantata_models.solo.training.text import HeldOut, read_heldout

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VoiceReport:
    """What was measured of one voice."""

    voice: str
    teacher: Score
    codec: Score
    speech: Score
    distortion_db: float
    """Mean mel-cepstral distortion of the speech against the teacher's reading."""
    real_time_factor: float
    """Seconds of one thread per second of speech, text track and decoder included."""
    groups: dict[str, float]
    """WER of the speech per group of held-out sentences."""


def say(talker: Talker, decoder: CodecDecoder, text: str, voice: int) -> Samples:
    """Text in spoken form -> samples."""
    reading = read_text(text)
    track = talker.text_track.forward_track(
        torch.tensor(reading.phones), torch.tensor(reading.word_start), reading.question, voice
    )
    codes = talker.generate(track.rows)
    samples: Samples = decoder.decode_all(codes[None])[0].numpy()
    return samples


@torch.inference_mode()
def through_codec(
    samples: Samples,
    encoder: CodecEncoder,
    quantiser: ResidualQuantiser,
    decoder: CodecDecoder,
) -> Samples:
    """Encodes and decodes; the result is padded to whole frames."""
    padded = np.pad(samples, (0, -len(samples) % decoder.samples_per_frame))
    codes = quantiser.encode(encoder(torch.from_numpy(padded)[None]))
    decoded: Samples = decoder.decode_all(codes)[0].numpy()
    return decoded


def teacher_reading(text: str, voice: str, path: Path) -> Samples:
    """Returns the teacher's own reading, kept in `path`."""
    if not path.exists():
        soundfile.write(path, trim(speak(text, TEACHERS[voice])), SAMPLE_RATE)
    samples: Samples = soundfile.read(path, dtype="float32")[0]
    return samples


def hear_teacher(judge: Judge, samples: Samples, path: Path) -> str:
    """Returns what is heard in a teacher's reading, kept in `path`: it never changes."""
    if not path.exists():
        path.write_text(judge.hear(samples, SAMPLE_RATE))
    return path.read_text()


@dataclass(frozen=True, slots=True)
class Models:
    """The loaded checkpoint."""

    talker: Talker
    decoder: CodecDecoder
    encoder: CodecEncoder
    quantiser: ResidualQuantiser
    mel: LogMel

    @classmethod
    def load(cls, weights: Path) -> Models:
        """Loads `weights`."""
        codec = load_config(weights).codec
        return cls(
            load_talker(weights),
            load_codec_decoder(weights),
            *load_codec_encoder(weights),
            LogMel(codec.mels, codec.fft_size, codec.hop, codec.sample_rate),
        )


def evaluate_voice(weights: Path, voice: str, folder: Path) -> VoiceReport:
    """Measures one voice over all held-out sentences; keeps the sounds and what was heard."""
    models, number = Models.load(weights), load_config(weights).voice_index(voice)
    judge, items = Judge(), read_heldout()
    heard: dict[str, list[str]] = {"teacher": [], "codec": [], "speech": []}
    spent = sounded = 0.0
    distortions: list[float] = []
    folder.mkdir(parents=True, exist_ok=True)
    for index, item in enumerate(tracked(items, len(items), voice)):
        began = time.perf_counter()
        speech = say(models.talker, models.decoder, item.text, number)
        spent += time.perf_counter() - began
        sounded += len(speech) / SAMPLE_RATE
        name = f"{voice}.{index:02d}"
        soundfile.write(folder / f"{name}.speech.wav", speech, SAMPLE_RATE)
        reading = teacher_reading(item.text, voice, folder / f"{name}.teacher.wav")
        copied = through_codec(reading, models.encoder, models.quantiser, models.decoder)
        heard["teacher"].append(hear_teacher(judge, reading, folder / f"{name}.teacher.txt"))
        heard["codec"].append(judge.hear(copied, SAMPLE_RATE))
        heard["speech"].append(judge.hear(speech, SAMPLE_RATE))
        distortions.append(mel_cepstral_distortion(speech, reading, models.mel))
    texts = [item.text for item in items]
    lines = [f"{text}\t{said}" for text, said in zip(texts, heard["speech"], strict=True)]
    (folder / f"{voice}.heard.tsv").write_text("\n".join(lines) + "\n")
    report = VoiceReport(
        voice=voice,
        teacher=score(texts, heard["teacher"]),
        codec=score(texts, heard["codec"]),
        speech=score(texts, heard["speech"]),
        distortion_db=float(np.mean(distortions)),
        real_time_factor=spent / sounded,
        groups=group_rates(items, heard["speech"]),
    )
    (folder / f"{voice}.json").write_text(json.dumps(asdict(report), indent=2) + "\n")
    return report


def group_rates(items: Sequence[HeldOut], heard: Sequence[str]) -> dict[str, float]:
    """Returns the word error rate of every group of sentences."""
    rates: dict[str, float] = {}
    for group in dict.fromkeys(item.group for item in items):
        pairs = [(i.text, said) for i, said in zip(items, heard, strict=True) if i.group == group]
        rates[group] = score([text for text, _ in pairs], [said for _, said in pairs]).wer
    return rates


def evaluate(weights: Path, folder: Path) -> list[VoiceReport]:
    """Measures every voice on one thread; writes one JSON file per voice into `folder`."""
    torch.set_num_threads(1)
    voices = load_config(weights).voices
    reports = [evaluate_voice(weights, voice.id, folder) for voice in voices]
    for report in reports:
        logger.info("%s", report)
    return reports
