"""Encodes audio to codes: log-mel, ConvNeXt, residual vector quantizer. For training and tests.

Letters: B rows, T frames of 80 ms, Z latent size, Q codebooks, V codes each.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata_layers.speaker_features import mel_filters
from cantata_models.solo.config import CodecConfig
from cantata_models.solo.networks.layers import ConvNextBlock, TrainableRowLinear, to_latents

LOG_FLOOR = 1e-5


class LogMel(nn.Module):
    """[B, N] samples -> [B, N / hop, mels] log magnitudes; hop h is centred on its samples."""

    window: torch.Tensor
    filters: torch.Tensor

    def __init__(self, mels: int, fft_size: int, hop: int, sample_rate: int) -> None:
        super().__init__()
        self.fft_size, self.hop = fft_size, hop
        self.register_buffer("window", torch.hann_window(fft_size), persistent=False)
        filters = torch.from_numpy(mel_filters(mels, fft_size, sample_rate))
        self.register_buffer("filters", filters, persistent=False)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        side = (self.fft_size - self.hop) // 2
        padded = functional.pad(samples, (side, self.fft_size - self.hop - side))
        frames = padded.unfold(1, self.fft_size, self.hop) * self.window
        magnitude = torch.fft.rfft(frames).abs()
        return torch.log((magnitude @ self.filters).clamp(min=LOG_FLOOR))


class ResidualQuantizer(nn.Module):
    """Q codebooks, each quantizing the residual of the ones before it."""

    codebooks: torch.Tensor

    def __init__(self, codebooks: int, codes: int, latent: int) -> None:
        super().__init__()
        self.register_buffer("codebooks", torch.zeros(codebooks, codes, latent))

    def encode(self, z: torch.Tensor) -> torch.Tensor:
        """[..., Z] -> [..., Q] int64, greedy."""
        residual, codes = z, []
        for book in self.codebooks:
            # Omits ||residual||^2, which is the same for every code.
            distance = book.square().sum(dim=1) - 2 * residual @ book.t()
            nearest = distance.argmin(dim=-1)
            residual = residual - book[nearest]
            codes.append(nearest)
        return torch.stack(codes, dim=-1)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """[..., Q] int64 -> [..., Z]."""
        return to_latents(self.codebooks, codes)


class CodecEncoder(nn.Module):
    """[B, T * samples_per_frame] samples -> [B, T, Z] latents. Not causal."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.config = config
        wide, frame = config.encoder_channels, config.frame_channels
        self.hops_per_frame = config.samples_per_frame // config.hop
        self.mel = LogMel(config.mels, config.fft_size, config.hop, config.sample_rate)
        self.into = TrainableRowLinear(config.mels, wide)
        self.hop_blocks = nn.ModuleList(
            ConvNextBlock(wide, 2 * wide, config.kernel) for _ in range(config.encoder_blocks)
        )
        self.fold = TrainableRowLinear(self.hops_per_frame * wide, frame)
        self.frame_blocks = nn.ModuleList(
            ConvNextBlock(frame, 2 * frame, config.frame_kernel) for _ in range(config.frame_blocks)
        )
        self.norm = nn.LayerNorm(frame)
        self.out = TrainableRowLinear(frame, config.latent_size)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        return self.encode_mel(self.mel(samples))

    def encode_mel(self, mel: torch.Tensor) -> torch.Tensor:
        """[B, H, mels] of `LogMel` -> [B, T, Z]."""
        x = self.into(mel / 4 + 1)
        for block in self.hop_blocks:
            x = block(x)
        batch, hops, _ = x.shape
        x = self.fold(x.reshape(batch, hops // self.hops_per_frame, -1))
        for block in self.frame_blocks:
            x = block(x)
        latent: torch.Tensor = self.out(self.norm(x))
        return latent
