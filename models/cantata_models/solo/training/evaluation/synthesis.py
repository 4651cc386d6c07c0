"""Runs the voice as the server does, in one process: spoken-form text to audio.

`SoloSynthesizer.say` has the evaluation's only call into the networks' text side.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from cantata_layers.speaker_features import speaker_vector
from cantata_models.solo.checkpoint import load_codec_decoder, load_codec_encoder, load_talker
from cantata_models.solo.config import load_config
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.codec_encoder import CodecEncoder, ResidualQuantizer
from cantata_models.solo.networks.talker import SoloTalkerNetwork
from cantata_models.solo.training.align import read_text
from cantata_models.solo.training.evaluation.acoustics import SAMPLE_RATE, Samples


@dataclass(frozen=True, slots=True)
class SynthesizedSentence:
    """One synthesized sentence and its cost."""

    samples: Samples
    talker_s: float
    """Seconds of processor time for the text track and the talker."""
    codec_s: float
    """Seconds of processor time for the decoder, frame by frame."""


@dataclass(frozen=True, slots=True)
class SoloSynthesizer:
    """The loaded checkpoint."""

    talker: SoloTalkerNetwork
    decoder: CodecDecoder
    encoder: CodecEncoder
    quantizer: ResidualQuantizer
    voices: tuple[str, ...]

    @classmethod
    def load(cls, weights: Path) -> SoloSynthesizer:
        """Loads the folder `weights`."""
        return cls(
            load_talker(weights),
            load_codec_decoder(weights),
            *load_codec_encoder(weights),
            tuple(voice.id for voice in load_config(weights).voices),
        )

    def stock_speaker(self, voice: str) -> torch.Tensor:
        """Returns a stock voice's [F] speaker vector."""
        return self.talker.text_track.stock_speakers[self.voices.index(voice)]

    @staticmethod
    def referred_speaker(reference: Samples) -> torch.Tensor:
        """Returns the [F] speaker vector of a recording at 24 kHz."""
        return torch.from_numpy(speaker_vector(reference, SAMPLE_RATE))

    @torch.inference_mode()
    def say(self, text: str, speaker: torch.Tensor, speed: float = 1.0) -> SynthesizedSentence:
        """Synthesizes spoken-form text; decodes the frames one by one, as in streaming.

        Raises:
            KeyError: a word is not in the lexicon.
        """
        reading = read_text(text)
        began = time.process_time()
        track = self.talker.text_track.forward_track(
            torch.tensor(reading.phones),
            torch.tensor(reading.word_start),
            reading.question,
            speaker,
            speed,
        )
        codes = self.talker.generate(track.rows)
        spoken = time.process_time()
        samples = self.stream(codes)
        return SynthesizedSentence(samples, spoken - began, time.process_time() - spoken)

    def stream(self, codes: torch.Tensor) -> Samples:
        """[T, Q] int64 -> [T * 1920] samples, decoded frame by frame."""
        state, slot = self.decoder.init_state(1), torch.zeros(1, dtype=torch.int64)
        chunks = [self.decoder.decode(state, slot, frame[None, None])[0] for frame in codes]
        samples: Samples = torch.cat(chunks)[:, 0].numpy()
        return samples

    @torch.inference_mode()
    def through_codec(self, samples: Samples) -> Samples:
        """Encodes and decodes samples; the result is padded to whole frames."""
        padded = np.pad(samples, (0, -len(samples) % self.decoder.samples_per_frame))
        codes = self.quantizer.encode(self.encoder(torch.from_numpy(padded)[None]))
        decoded: Samples = self.decoder.decode_all(codes)[0].numpy()
        return decoded
