"""Decodes latents with an explicit pitch to audio: a causal trunk, then a source filter.

A latent is what the encoder says of 80 ms, then the pitch at the end of each of its hops, then the
voicing there. The pulses take the pitch as it stands, so it is heard exactly, and whoever plans a
melody can write it in.

Letters: B rows, T frames of 80 ms, H hops of 10 ms (8 per frame), Z latent size, S slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import nn
from torch.nn import functional

from cantata_models.solo.config import CodecConfig
from cantata_models.solo.networks.codec_encoder import CodecEncoder
from cantata_models.solo.networks.layers import ConvNextBlock, RowLinear
from cantata_models.solo.networks.source_filter import (
    HELD,
    HOP,
    NOISE_HOPS,
    RATE_HZ,
    SEGMENT,
    SourceFilter,
    add_segments,
)

MIDDLE_LOG2_HZ = 7.5
"""181 Hz, between men and women: a latent's pitch is in octaves from here."""
LOWEST_HZ, HIGHEST_HZ = 40.0, 1000.0
LARGEST_LOG_GAIN = 3.0
_LANES = 32
"""Two vector registers of 512 bits, as many as torch takes at a time: a row that fills whole pairs
has the same bits in any batch. What does not fill a pair is computed by other, scalar code."""
_OUTPUT_SCALE = 3.0
"""Of the trunk's last layer, so that log gains move far in few steps."""
_HARMONIC_CURVE = (-2.7, -4.0, -4.6, -5.4, -5.9, -6.2, -6.2, -6.6, -6.8, -7.4, -7.3, -7.5, -7.0)
_NOISE_CURVE = (-7.8, -6.8, -7.8, -8.3, -8.4, -8.9, -9.4, -9.4, -10.9)
"""Mean log gains of natural speech at equally spaced points; training that starts elsewhere spends
hundreds of steps on the level."""


@dataclass(frozen=True, slots=True)
class FilterCodecConfig:
    """Sizes of the codec with a source filter."""

    heard_size: int = 112
    """Numbers of a latent that the encoder makes."""
    hops_per_frame: int = 8
    harmonic_points: int = 96
    noise_points: int = 64
    frame_channels: int = 384
    frame_blocks: int = 2
    frame_kernel: int = 3
    hop_channels: int = 256
    hop_blocks: int = 7
    hop_expansion: int = 2
    hop_kernel: int = 7
    encoder: CodecConfig = field(default_factory=CodecConfig)

    @property
    def latent_size(self) -> int:
        """Z."""
        return self.heard_size + 2 * self.hops_per_frame

    @property
    def samples_per_frame(self) -> int:
        """At 24 kHz."""
        return self.hops_per_frame * HOP


@dataclass(frozen=True, slots=True)
class FilterState:
    """The decoder's state for each slot, created by `init_state` and updated by `decode`."""

    frame_histories: tuple[torch.Tensor, ...]
    """Per block at 12.5 Hz: [S, K - 1, C] float32."""
    hop_histories: tuple[torch.Tensor, ...]
    """Per block at 100 Hz: [S, K - 1, C] float32."""
    phase: torch.Tensor
    """[S] float64, turns of the pitch up to now, from 0 to 1."""
    hertz: torch.Tensor
    """[S, 1] float32 at the last hop's end; 0 before the first."""
    voicing: torch.Tensor
    """[S, 1] float32, the same."""
    pulses: torch.Tensor
    """[S, 1, HOP] float32 of the last hop."""
    place: torch.Tensor
    """[S] int64, in the noise."""
    held: torch.Tensor
    """[S, HELD, SEGMENT] float32: segments that still sound."""

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Every tensor; the first dimension of each is the slot."""
        source = (self.phase, self.hertz, self.voicing, self.pulses, self.place, self.held)
        return (*self.frame_histories, *self.hop_histories, *source)

    @property
    def slots(self) -> int:
        """S."""
        return self.held.shape[0]

    def take(self, slots: torch.Tensor) -> FilterState:
        """Returns copies of these slots' rows ([B] int64)."""
        return FilterState(
            tuple(tensor[slots] for tensor in self.frame_histories),
            tuple(tensor[slots] for tensor in self.hop_histories),
            self.phase[slots],
            self.hertz[slots],
            self.voicing[slots],
            self.pulses[slots],
            self.place[slots],
            self.held[slots],
        )

    def put(self, slots: torch.Tensor, rows: FilterState) -> None:
        """Writes rows from `take` back, in place."""
        for mine, theirs in zip(self.tensors(), rows.tensors(), strict=True):
            mine[slots] = theirs


class PitchedEncoder(nn.Module):
    """Sound and its pitch -> latents. Not causal.

    A linear layer carries the spectra past the network, which adds what that leaves out.
    """

    def __init__(self, config: FilterCodecConfig) -> None:
        super().__init__()
        self.config = config
        self.heard = CodecEncoder(replace(config.encoder, latent_size=config.heard_size))
        self.envelope = RowLinear(config.hops_per_frame * config.encoder.mels, config.heard_size)

    def forward(
        self, samples: torch.Tensor, log2_hz: torch.Tensor, voicing: torch.Tensor
    ) -> torch.Tensor:
        """The latents.

        Args:
            samples: [B, T * samples_per_frame] float32.
            log2_hz: [B, H], the pitch at the hops' ends, drawn through where there is none.
            voicing: [B, H], from 0 to 1.

        Returns:
            [B, T, Z] float32.
        """
        shape = (len(samples), -1, self.config.hops_per_frame)
        pitch = (log2_hz - MIDDLE_LOG2_HZ).reshape(shape)
        mel = self.heard.mel(samples)
        patches = mel.reshape(len(mel), pitch.shape[1], -1)
        heard = self.heard.encode_mel(mel) + self.envelope(patches)
        return torch.cat([heard, pitch, voicing.reshape(shape)], dim=2)


class FilterDecoder(nn.Module):
    """Latents at 12.5 Hz -> 24 kHz mono, 10 ms late (`lag` samples: out[n] = target[n - lag]).

    As in the encoder, a linear layer carries the spectra past the trunk.
    """

    mean_gains: torch.Tensor

    def __init__(self, config: FilterCodecConfig) -> None:
        super().__init__()
        self.config = config
        self.sample_rate = RATE_HZ
        self.samples_per_frame = config.samples_per_frame
        self.lag = HOP
        frame, hop = config.frame_channels, config.hop_channels
        self.into = RowLinear(config.latent_size, frame)
        self.frame_blocks = nn.ModuleList(
            ConvNextBlock(frame, 3 * frame, config.frame_kernel) for _ in range(config.frame_blocks)
        )
        self.unfold = RowLinear(frame, config.hops_per_frame * hop)
        self.pitch_into = RowLinear(2, hop)
        self.hop_blocks = nn.ModuleList(
            ConvNextBlock(hop, config.hop_expansion * hop, config.hop_kernel)
            for _ in range(config.hop_blocks)
        )
        self.norm = nn.LayerNorm(hop)
        points = config.harmonic_points + config.noise_points
        self.envelope = RowLinear(config.latent_size, config.hops_per_frame * points)
        self.out = RowLinear(hop, points)
        nn.init.normal_(self.out.weight, std=0.01)
        for bias in (self.out.bias, self.envelope.weight, self.envelope.bias):
            nn.init.zeros_(bias)
        curves = ((_HARMONIC_CURVE, config.harmonic_points), (_NOISE_CURVE, config.noise_points))
        mean = torch.cat([_spread_curve(curve, count) for curve, count in curves])
        self.register_buffer("mean_gains", mean, persistent=False)
        self.source = SourceFilter(config.harmonic_points, config.noise_points)

    def init_state(self, slots: int) -> FilterState:
        """Returns silent state for `slots` concurrent streams, on the weights' device."""
        c, device = self.config, self.mean_gains.device
        frame = torch.zeros(slots, c.frame_kernel - 1, c.frame_channels, device=device)
        hop = torch.zeros(slots, c.hop_kernel - 1, c.hop_channels, device=device)
        return FilterState(
            tuple(frame.clone() for _ in range(c.frame_blocks)),
            tuple(hop.clone() for _ in range(c.hop_blocks)),
            torch.zeros(slots, dtype=torch.float64, device=device),
            torch.zeros(slots, 1, device=device),
            torch.zeros(slots, 1, device=device),
            torch.zeros(slots, 1, HOP, device=device),
            torch.zeros(slots, dtype=torch.int64, device=device),
            torch.zeros(slots, HELD, SEGMENT, device=device),
        )

    def reset(self, state: FilterState, slots: torch.Tensor) -> None:
        """Resets these slots ([B] int64) in place."""
        for tensor in state.tensors():
            tensor[slots.to(tensor.device)] = 0

    @torch.inference_mode()
    def decode(
        self, state: FilterState, slots: torch.Tensor, latents: torch.Tensor
    ) -> torch.Tensor:
        """Decodes the next frames of these slots and advances their state in place.

        Args:
            state: from `init_state`.
            slots: [B] int64, all different.
            latents: [B, T, Z] float32, T >= 1.

        Returns:
            [B, T * samples_per_frame, 1] float32.
        """
        rows = state.take(slots)
        samples = self.advance(rows, latents)
        state.put(slots, rows)
        return samples[..., None]

    @torch.inference_mode()
    def decode_all(self, latents: torch.Tensor) -> torch.Tensor:
        """[B, T, Z] -> [B, T * samples_per_frame], both float32, from fresh state, with the lag."""
        return self.advance(self.init_state(len(latents)), latents)

    def advance(self, rows: FilterState, latents: torch.Tensor) -> torch.Tensor:
        """Latents [B, T, Z] -> samples [B, T * samples_per_frame]; updates `rows` in place."""
        hertz, voicing = self.read_pitch(latents)
        return self.make_sound(rows, self.run_trunk(rows, latents), hertz, voicing)

    def read_pitch(self, latents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[B, T, Z] -> the pitch in Hz and the voicing, from 0 to 1, at the hops' ends: [B, H]."""
        sizes = [self.config.heard_size, self.config.hops_per_frame, self.config.hops_per_frame]
        _, octaves, voicing = torch.split(latents.float(), sizes, dim=2)
        hops = self.config.hops_per_frame
        whole = functional.pad(octaves + MIDDLE_LOG2_HZ, (0, -hops % _LANES))
        hertz = torch.exp2(whole)[..., :hops].clamp(LOWEST_HZ, HIGHEST_HZ)
        return hertz.flatten(1), voicing.clamp(0, 1).flatten(1)

    def run_trunk(self, rows: FilterState, latents: torch.Tensor) -> torch.Tensor:
        """Latents [B, T, Z] -> log gains [B, H, K + K'] of pulses and noise, float32.

        Updates the histories of `rows` in place.
        """
        batch, frames, _ = latents.shape
        x = self.into(latents)
        for block, history in zip(self.frame_blocks, rows.frame_histories, strict=True):
            x = _run_causal(block, x, history)
        x = self.unfold(x).view(batch, frames * self.config.hops_per_frame, -1)
        pitch = latents[..., self.config.heard_size :].reshape(batch, frames, 2, -1)
        x = x + self.pitch_into(pitch.transpose(2, 3).flatten(1, 2))
        for block, history in zip(self.hop_blocks, rows.hop_histories, strict=True):
            x = _run_causal(block, x, history)
        envelope = self.envelope(latents).view(batch, x.shape[1], -1)
        gains: torch.Tensor = self.out(self.norm(x)) * _OUTPUT_SCALE + envelope + self.mean_gains
        return gains.float().clamp(max=LARGEST_LOG_GAIN)

    def make_sound(
        self, rows: FilterState, gains: torch.Tensor, hertz: torch.Tensor, voicing: torch.Tensor
    ) -> torch.Tensor:
        """From gains to samples; updates the source's part of `rows` in place.

        Args:
            rows: as long as the batch.
            gains: [B, H, K + K'] from `run_trunk`.
            hertz, voicing: [B, H] from `read_pitch`.

        Returns:
            [B, H * HOP] float32.
        """
        sizes = [self.config.harmonic_points, self.config.noise_points]
        harmonic, noise = torch.split(gains, sizes, dim=2)
        before = torch.where(rows.hertz > 0, rows.hertz, hertz[:, :1])
        pitch = torch.cat([before, hertz], dim=1)
        gate = torch.cat([rows.voicing, voicing], dim=1)
        turns = torch.cumsum(self.source.count_turns(pitch[:, :-1], hertz), dim=1)
        ends = torch.cat([rows.phase[:, None], rows.phase[:, None] + turns], dim=1)
        pulses = self.source.make_pulses(ends[:, :-1] % 1, pitch, gate)
        pulses = torch.cat([rows.pulses, pulses], dim=1)
        places = rows.place[:, None] + torch.arange(gains.shape[1], device=gains.device)
        segments = self.source.make_segments(harmonic, noise, pulses, places % NOISE_HOPS)
        rows.phase.copy_(ends[:, -1] % 1)
        rows.hertz.copy_(hertz[:, -1:].detach())
        rows.voicing.copy_(voicing[:, -1:].detach())
        rows.pulses.copy_(pulses[:, -1:])
        rows.place.copy_((places[:, -1] + 1) % NOISE_HOPS)
        return add_segments(segments, rows.held)


def _run_causal(block: nn.Module, x: torch.Tensor, history: torch.Tensor) -> torch.Tensor:
    assert isinstance(block, ConvNextBlock)  # a ModuleList types its items as plain modules
    return block.forward_causal(x, history)


def _spread_curve(curve: tuple[float, ...], count: int) -> torch.Tensor:
    """[count] float32: the curve, drawn through more points."""
    points = torch.linspace(0, len(curve) - 1, count)
    values = torch.tensor(curve)
    left = points.floor().long().clamp(max=len(curve) - 2)
    return torch.lerp(values[left], values[left + 1], points - left)
