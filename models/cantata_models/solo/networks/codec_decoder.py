"""Decodes codes to audio: a causal decoder with explicit streaming state per slot.

Letters: B rows, T frames of 80 ms, H hops of 10 ms (8 per frame), C channels, S slots, F bins.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from cantata.contract.model.codec import StreamingDecoder
from cantata_models.solo.config import CodecConfig
from cantata_models.solo.networks.layers import ConvNextBlock, TrainableRowLinear, to_latents

BIN_ALIGNMENT = 16
"""Bins are padded to a multiple of this, the width of a vector register."""
LOG_MAGNITUDE_LIMIT = 5.0


@dataclass(frozen=True, slots=True)
class SoloCodecState:
    """The decoder's state for each slot, created by `init_state` and updated by `decode`."""

    frame_histories: tuple[torch.Tensor, ...]
    """Per block at 12.5 Hz: [S, K - 1, C] float32."""
    hop_histories: tuple[torch.Tensor, ...]
    """Per block at 100 Hz: [S, K - 1, C] float32."""
    overlap: torch.Tensor
    """[S, fft_size / hop - 1, fft_size] float32: windowed hops that overlap later ones."""

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Every tensor; the first dimension of each is the slot."""
        return (*self.frame_histories, *self.hop_histories, self.overlap)

    @property
    def slots(self) -> int:
        """S."""
        return self.overlap.shape[0]

    def take(self, slots: torch.Tensor) -> SoloCodecState:
        """Returns copies of these slots' rows ([B] int64)."""
        return SoloCodecState(
            tuple(tensor[slots] for tensor in self.frame_histories),
            tuple(tensor[slots] for tensor in self.hop_histories),
            self.overlap[slots],
        )

    def put(self, slots: torch.Tensor, rows: SoloCodecState) -> None:
        """Writes rows from `take` back, in place."""
        for mine, theirs in zip(self.tensors(), rows.tensors(), strict=True):
            mine[slots] = theirs


def causal(block: nn.Module, x: torch.Tensor, history: torch.Tensor) -> torch.Tensor:
    """Runs one block of a ModuleList, which types its items as plain modules."""
    assert isinstance(block, ConvNextBlock)
    return block.forward_causal(x, history)


class CodecDecoder(nn.Module, StreamingDecoder):
    """Codes at 12.5 Hz -> 24 kHz mono.

    The output lags by `lag` samples (15 ms: out[n] = target[n - lag]), the overlap of the inverse
    STFT. So every frame yields its samples at once and the end needs no flush.
    """

    codebooks: torch.Tensor
    window: torch.Tensor
    recordable = True

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.config = config
        self.sample_rate = config.sample_rate
        self.channels = 1
        self.samples_per_frame = config.samples_per_frame
        self.num_codebooks = config.codebooks
        self.codebook_size = config.codebook_size
        self.hops_per_frame = config.samples_per_frame // config.hop
        self.lag = (config.fft_size - config.hop) // 2
        self.bins = config.fft_size // 2 + 1
        self.padded_bins = -(-self.bins // BIN_ALIGNMENT) * BIN_ALIGNMENT
        shape = (config.codebooks, config.codebook_size, config.latent_size)
        self.register_buffer("codebooks", torch.zeros(shape))
        # Hann, scaled so that four overlapping windows sum to one.
        window = torch.hann_window(config.fft_size) * (2 * config.hop / config.fft_size)
        self.register_buffer("window", window, persistent=False)

        frame, hop = config.frame_channels, config.decoder_channels
        self.into = TrainableRowLinear(config.latent_size, frame)
        self.frame_blocks = nn.ModuleList(
            ConvNextBlock(frame, 3 * frame, config.frame_kernel) for _ in range(config.frame_blocks)
        )
        self.unfold = TrainableRowLinear(frame, self.hops_per_frame * hop)
        self.hop_blocks = nn.ModuleList(
            ConvNextBlock(hop, config.decoder_expansion * hop, config.kernel)
            for _ in range(config.decoder_blocks)
        )
        self.norm = nn.LayerNorm(hop)
        self.spectrum = TrainableRowLinear(hop, 2 * self.padded_bins)

    def init_state(self, slots: int) -> SoloCodecState:
        """Returns silent state for `slots` concurrent streams, on the weights' device."""
        c, device = self.config, self.window.device
        frame = torch.zeros(slots, c.frame_kernel - 1, c.frame_channels, device=device)
        hop = torch.zeros(slots, c.kernel - 1, c.decoder_channels, device=device)
        overlap = torch.zeros(slots, c.fft_size // c.hop - 1, c.fft_size, device=device)
        return SoloCodecState(
            tuple(frame.clone() for _ in range(c.frame_blocks)),
            tuple(hop.clone() for _ in range(c.decoder_blocks)),
            overlap,
        )

    def reset(self, state: SoloCodecState, slots: torch.Tensor) -> None:
        slots = slots.to(self.window.device, non_blocking=True)
        for tensor in state.tensors():
            tensor[slots] = 0.0

    def latents(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, T, Q] int64 -> [B, T, Z] float32."""
        return to_latents(self.codebooks, codes)

    @torch.inference_mode()
    def decode(
        self, state: SoloCodecState, slots: torch.Tensor, codes: torch.Tensor
    ) -> torch.Tensor:
        """Decodes the next frames of these slots and advances their state in place.

        Args:
            state: from `init_state`.
            slots: [B] int64, all different.
            codes: [B, T, Q] int64, T >= 1.

        Returns:
            [B, T * samples_per_frame, 1] float32.
        """
        device = self.window.device
        slots = slots.to(device, non_blocking=True)
        rows = state.take(slots)
        samples = self.advance(rows, self.latents(codes.to(device, non_blocking=True)))
        state.put(slots, rows)
        return samples[..., None]

    @torch.inference_mode()
    def decode_all(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, T, Q] int64 -> [B, T * samples_per_frame] float32 from fresh state, with the lag."""
        return self.advance(self.init_state(len(codes)), self.latents(codes))

    def advance(self, rows: SoloCodecState, latents: torch.Tensor) -> torch.Tensor:
        """Latents [B, T, Z] -> samples [B, T * samples_per_frame]; updates `rows` in place."""
        batch, frames, _ = latents.shape
        x = self.into(latents)
        for block, history in zip(self.frame_blocks, rows.frame_histories, strict=True):
            x = causal(block, x, history)
        x = self.unfold(x).view(batch, frames * self.hops_per_frame, -1)
        for block, history in zip(self.hop_blocks, rows.hop_histories, strict=True):
            x = causal(block, x, history)
        return self.overlap_add(self.windowed_hops(x), rows.overlap)

    def windowed_hops(self, x: torch.Tensor) -> torch.Tensor:
        """[B, H, C] -> [B, H, fft_size]: each hop's inverse transform, windowed."""
        spectrum = self.spectrum(self.norm(x)).float()
        log_magnitude, phase = spectrum.split(self.padded_bins, dim=-1)
        magnitude = torch.exp(log_magnitude.contiguous().clamp(max=LOG_MAGNITUDE_LIMIT))
        phase = phase.contiguous()
        real, imaginary = magnitude * torch.cos(phase), magnitude * torch.sin(phase)
        bins = torch.complex(real, imaginary)[..., : self.bins]
        hops: torch.Tensor = torch.fft.irfft(bins, n=self.config.fft_size) * self.window
        return hops

    def overlap_add(self, hops: torch.Tensor, overlap: torch.Tensor) -> torch.Tensor:
        """Adds overlapping hops in a fixed order, so that chunking cannot change a sum.

        Args:
            hops: [B, H, fft_size].
            overlap: [B, R, fft_size], the previous R hops; replaced in place by the last R.

        Returns:
            [B, H * hop].
        """
        held = overlap.shape[1]
        context = torch.cat([overlap, hops], dim=1)
        overlap.copy_(context[:, context.shape[1] - held :].detach())
        hop, count = self.config.hop, hops.shape[1]
        total = context[:, :count, held * hop :]
        for age in range(held - 1, -1, -1):
            start = held - age
            total = total + context[:, start : start + count, age * hop : (age + 1) * hop]
        return total.reshape(len(hops), count * hop)
