"""Stage evaluate: every held-out sentence in every voice, judged at three points.

"teacher" is RHVoice's own reading, "codec" the same reading encoded and decoded (the ceiling), and
"voice" what the shipped weights say from text.
"""

from __future__ import annotations

import json
import logging
import time
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
from cantata_models.solo.training.text import read_heldout

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


def evaluate_voice(weights: Path, voice: str, folder: Path, with_teacher: bool) -> VoiceReport:
    """Measures one voice over all held-out sentences and keeps the sounds in `folder`."""
    config = load_config(weights)
    talker, decoder = load_talker(weights), load_codec_decoder(weights)
    encoder, quantiser = load_codec_encoder(weights)
    judge, items = Judge(), read_heldout()
    mel = LogMel(config.codec.mels, config.codec.fft_size, config.codec.hop, SAMPLE_RATE)
    heard: dict[str, list[str]] = {"teacher": [], "codec": [], "speech": []}
    spent = sounded = 0.0
    distortions: list[float] = []
    folder.mkdir(parents=True, exist_ok=True)
    for number, item in enumerate(tracked(items, len(items), voice)):
        began = time.perf_counter()
        speech = say(talker, decoder, item.text, config.voice_index(voice))
        spent += time.perf_counter() - began
        sounded += len(speech) / SAMPLE_RATE
        soundfile.write(folder / f"{voice}.{number:02d}.wav", speech, SAMPLE_RATE)
        heard["speech"].append(judge.hear(speech, SAMPLE_RATE))
        if with_teacher:
            reading = trim(speak(item.text, TEACHERS[voice]))
            copied = through_codec(reading, encoder, quantiser, decoder)
            heard["teacher"].append(judge.hear(reading, SAMPLE_RATE))
            heard["codec"].append(judge.hear(copied, SAMPLE_RATE))
            distortions.append(mel_cepstral_distortion(speech, reading, mel))
    texts = [item.text for item in items]
    nothing = Score(0, float("nan"), float("nan"))
    scores = {name: score(texts, said) if said else nothing for name, said in heard.items()}
    groups = {
        group: score(
            [item.text for item in items if item.group == group],
            [
                said
                for item, said in zip(items, heard["speech"], strict=True)
                if item.group == group
            ],
        ).wer
        for group in dict.fromkeys(item.group for item in items)
    }
    for text, said in zip(texts, heard["speech"], strict=True):
        logger.debug("%s | %s", text, said)
    distortion = float(np.mean(distortions)) if distortions else float("nan")
    return VoiceReport(
        voice=voice,
        **scores,
        distortion_db=distortion,
        real_time_factor=spent / sounded,
        groups=groups,
    )


def evaluate(weights: Path, folder: Path, with_teacher: bool = True) -> list[VoiceReport]:
    """Measures every voice on one thread and writes `folder`/report.json."""
    torch.set_num_threads(1)
    reports = [
        evaluate_voice(weights, voice.id, folder, with_teacher)
        for voice in load_config(weights).voices
    ]
    for report in reports:
        logger.info("%s", report)
    text = json.dumps([asdict(report) for report in reports], indent=2)
    (folder / "report.json").write_text(text + "\n")
    return reports
