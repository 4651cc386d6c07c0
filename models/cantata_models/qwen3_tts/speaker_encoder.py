"""Encodes a recording's speaker as a vector: ECAPA-TDNN over a log-mel spectrogram.

Letters: N samples, T frames of 256 samples, M mels, E vector size.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from transformers.audio_utils import mel_filter_bank

from cantata.contract.data.errors import InvalidAudio
from cantata_layers.ecapa import Ecapa
from cantata_layers.ecapa_config import EcapaConfig
from cantata_models.qwen3_tts.speaker_config import SAMPLE_RATE, SPEAKER, load_speaker_config

FFT_SIZE = 1024
HOP = 256
MAX_FREQUENCY = 12_000.0
POWER_FLOOR = 1e-9
LOG_FLOOR = 1e-5
MIN_SAMPLES = 2_400
"""A tenth of a second. In a shorter recording the reflected edges would reach beyond its end."""


class LogMel(nn.Module):
    """[N] samples -> [T, M] log magnitudes."""

    window: torch.Tensor
    filters: torch.Tensor

    def __init__(self, mels: int) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(FFT_SIZE), persistent=False)
        filters = mel_filter_bank(
            num_frequency_bins=FFT_SIZE // 2 + 1,
            num_mel_filters=mels,
            min_frequency=0.0,
            max_frequency=MAX_FREQUENCY,
            sampling_rate=SAMPLE_RATE,
            norm="slaney",
            mel_scale="slaney",
        )
        self.register_buffer("filters", torch.from_numpy(filters).float(), persistent=False)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        side = (FFT_SIZE - HOP) // 2
        padded = functional.pad(samples[None], (side, side), mode="reflect")[0]
        spectrum = torch.fft.rfft(padded.unfold(0, FFT_SIZE, HOP) * self.window)
        power = spectrum.real.square() + spectrum.imag.square()
        mels = torch.sqrt(power + POWER_FLOOR) @ self.filters
        return torch.log(mels.clamp(min=LOG_FLOOR))


class SpeakerEncoder(Ecapa):
    """Converts a recording to the vector that represents its speaker in a prompt."""

    def __init__(self, config: EcapaConfig) -> None:
        super().__init__(config)
        self.mel = LogMel(config.mels)

    @torch.inference_mode()
    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """Compute a speaker's vector.

        Args:
            samples: [N] float32 mono at 24 kHz.

        Returns:
            [E] float32.

        Raises:
            InvalidAudio: the recording is shorter than a tenth of a second.
        """
        if len(samples) < MIN_SAMPLES:
            raise InvalidAudio(
                f"the reference has {len(samples) / SAMPLE_RATE:.2f} s of sound; a speaker's "
                f"vector needs at least {MIN_SAMPLES / SAMPLE_RATE:.1f} s"
            )
        return torch.as_tensor(self(self.mel(samples).t()[None])[0])


def load_speaker_encoder(checkpoint: Path) -> SpeakerEncoder:
    """Load a base checkpoint's speaker encoder, in fp32.

    Raises:
        ConfigError: the folder holds no such checkpoint.
    """
    encoder = SpeakerEncoder(load_speaker_config(checkpoint))
    tensors = ((name, tensor.float()) for name, tensor in SPEAKER.read(checkpoint))
    SPEAKER.fill(encoder, tensors, checkpoint)
    return encoder
