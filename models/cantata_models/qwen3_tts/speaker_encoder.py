"""Encodes a recording's speaker as a vector: ECAPA-TDNN over a log-mel spectrogram.

Desplanques et al., "ECAPA-TDNN", 2020 (arXiv:2005.07143), in the checkpoints' variant: no batch
normalisation, reflected edges, and statistics of all frames next to each frame's own values.

Letters: N samples, T frames of 256 samples, M mels, C channels, E vector size.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from transformers.audio_utils import mel_filter_bank

from cantata.contract.data.errors import ConfigError, InvalidAudio
from cantata_layers.checkpoint import read_tensors
from cantata_layers.json_fields import read_json

SAMPLE_RATE = 24_000
FFT_SIZE = 1024
HOP = 256
MAX_FREQUENCY = 12_000.0
POWER_FLOOR = 1e-9
LOG_FLOOR = 1e-5
VARIANCE_FLOOR = 1e-12
MIN_SAMPLES = 2_400
"""A tenth of a second. In a shorter recording the reflected edges would reach beyond its end."""
PREFIX = "speaker_encoder."


@dataclass(frozen=True, slots=True)
class SpeakerEncoderConfig:
    """Sizes of the network. The three lists have one entry per layer."""

    mels: int
    size: int
    """E."""
    channels: tuple[int, ...]
    kernels: tuple[int, ...]
    dilations: tuple[int, ...]
    attention_channels: int
    parts: int
    """Number of channel groups in a Res2Net block, each fed by the previous group."""
    squeezed_channels: int


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


class ReflectConv(nn.Module):
    """A convolution that keeps the number of positions, with reflected edges and a ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.conv = same_conv(inputs, outputs, kernel, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.conv(x))


def same_conv(inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> nn.Conv1d:
    """A convolution over [B, C, T] that keeps T."""
    return nn.Conv1d(
        inputs, outputs, kernel, dilation=dilation, padding="same", padding_mode="reflect"
    )


class Res2NetBlock(nn.Module):
    """Channel groups; each group but the first is convolved after adding the previous one."""

    def __init__(self, channels: int, parts: int, kernel: int, dilation: int) -> None:
        super().__init__()
        width = channels // parts
        self.blocks = nn.ModuleList(
            ReflectConv(width, width, kernel, dilation) for _ in range(parts - 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = x.chunk(len(self.blocks) + 1, dim=1)
        made = [parts[0]]
        for index, (block, part) in enumerate(zip(self.blocks, parts[1:], strict=True)):
            made.append(block(part if index == 0 else part + made[-1]))
        return torch.cat(made, dim=1)


class SqueezeExcitation(nn.Module):
    """Scales each channel by a factor computed from the whole recording."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.conv1 = same_conv(channels, squeezed)
        self.conv2 = same_conv(squeezed, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=2, keepdim=True)
        return x * torch.sigmoid(self.conv2(functional.relu(self.conv1(mean))))


class FrameBlock(nn.Module):
    """Pointwise, Res2Net, pointwise, squeeze-excitation and a residual connection."""

    def __init__(self, config: SpeakerEncoderConfig, index: int) -> None:
        super().__init__()
        channels = config.channels[index]
        self.tdnn1 = ReflectConv(config.channels[index - 1], channels)
        self.res2net_block = Res2NetBlock(
            channels, config.parts, config.kernels[index], config.dilations[index]
        )
        self.tdnn2 = ReflectConv(channels, channels)
        self.se_block = SqueezeExcitation(channels, config.squeezed_channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        update: torch.Tensor = self.se_block(self.tdnn2(self.res2net_block(self.tdnn1(x))))
        return x + update


class AttentiveStatistics(nn.Module):
    """[B, C, T] -> [B, 2C, 1]: mean and deviation over time, weighted by attention per channel."""

    def __init__(self, channels: int, attention_channels: int) -> None:
        super().__init__()
        self.tdnn = ReflectConv(3 * channels, attention_channels)
        self.conv = same_conv(attention_channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        even = torch.full_like(x[:, :1], 1.0 / x.shape[2])
        summary = [part.expand_as(x) for part in self._statistics(x, even)]
        attention = self.conv(torch.tanh(self.tdnn(torch.cat([x, *summary], dim=1))))
        return torch.cat(self._statistics(x, torch.softmax(attention, dim=2)), dim=1)

    @staticmethod
    def _statistics(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean = (weight * x).sum(dim=2, keepdim=True)
        variance = (weight * (x - mean).square()).sum(dim=2, keepdim=True)
        return mean, variance.clamp(min=VARIANCE_FLOOR).sqrt()


class SpeakerEncoder(nn.Module):
    """Converts a recording to the vector that represents its speaker in a prompt."""

    def __init__(self, config: SpeakerEncoderConfig) -> None:
        super().__init__()
        channels, last = config.channels, len(config.channels) - 1
        self.mel = LogMel(config.mels)
        first = ReflectConv(config.mels, channels[0], config.kernels[0], config.dilations[0])
        frames = (FrameBlock(config, index) for index in range(1, last))
        self.blocks = nn.ModuleList([first, *frames])
        self.mfa = ReflectConv(
            sum(channels[1:last]), channels[last], config.kernels[last], config.dilations[last]
        )
        self.asp = AttentiveStatistics(channels[last], config.attention_channels)
        self.fc = same_conv(2 * channels[last], config.size)

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
        x = self.mel(samples).t()[None]
        layers = []
        for block in self.blocks:
            x = block(x)
            layers.append(x)
        pooled = self.asp(self.mfa(torch.cat(layers[1:], dim=1)))
        return torch.as_tensor(self.fc(pooled)[0, :, 0])


def load_speaker_encoder(checkpoint: Path) -> SpeakerEncoder:
    """Load a base checkpoint's speaker encoder, in fp32.

    Raises:
        ConfigError: the folder holds no such checkpoint.
    """
    encoder = SpeakerEncoder(_load_config(checkpoint))
    tensors = {name: tensor.float() for name, tensor in read_tensors(checkpoint, PREFIX)}
    try:
        encoder.load_state_dict(tensors)
    except RuntimeError as error:
        raise ConfigError(f"{checkpoint}: speaker encoder: {error}") from error
    return encoder.eval().requires_grad_(False)


def _load_config(checkpoint: Path) -> SpeakerEncoderConfig:
    """Load the config; published files list only values that differ from the defaults."""
    fields = read_json(checkpoint / "config.json").section("speaker_encoder_config")

    config = SpeakerEncoderConfig(
        mels=fields.get("mel_dim", int, 128),
        size=fields.get("enc_dim", int, 1024),
        channels=fields.integers("enc_channels", (512, 512, 512, 512, 1536)),
        kernels=fields.integers("enc_kernel_sizes", (5, 3, 3, 3, 1)),
        dilations=fields.integers("enc_dilations", (1, 2, 3, 4, 1)),
        attention_channels=fields.get("enc_attention_channels", int, 128),
        parts=fields.get("enc_res2net_scale", int, 8),
        squeezed_channels=fields.get("enc_se_channels", int, 128),
    )
    if not len(config.channels) == len(config.kernels) == len(config.dilations) >= 3:
        raise ConfigError(
            f"{fields.where}: enc_channels, enc_kernel_sizes and enc_dilations must have the same "
            "length, at least 3"
        )
    rate = fields.get("sample_rate", int, SAMPLE_RATE)
    if rate != SAMPLE_RATE:
        raise ConfigError(f"{fields.where}: sample_rate {rate} is not served; valid: {SAMPLE_RATE}")
    return config
