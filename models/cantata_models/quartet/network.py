"""The network: from phones to durations and a melody, and from these to spectra.

Its shape is hibari's (hibari-tts 0.2, Maureese Williams, Apache-2.0), with speakers added: a
speaker vector scales and shifts what each block normalizes. A stock voice has its own; that of a
recording is computed from its features (`cantata_layers.speaker_features`). It was trained on from
hibari's weights.

Letters: B rows, T phones, F frames of 12.5 ms, G frames of 25 ms, C channels, S speaker size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from cantata_layers.harmonic_vocoder import BINS
from cantata_layers.speaker_features import SPEAKER_SIZE as FEATURES

PHONES = 178
"""Ids of misaki's alphabet as Kokoro counts them."""
SPEAKER_SIZE = 32
HEADS = 2
PARTS = 5
"""Of a spectrum: see `harmonic_vocoder.Spectra`."""
FRAMES_PER_COUNT = 2
"""Durations count frames of 25 ms."""
PITCH_SCALE = 100.0
ENERGY_SCALE = 5.0
LOG_SCALE = 5.0
DECODER_BLOCKS = 8
KERNEL = 7
MAX_DEVIATIONS = 3.0
"""A feature beyond them says nothing of a speaker: noise, a room, a telephone."""
CONTEXT = (DECODER_BLOCKS + 1) * (KERNEL // 2)
"""Frames on each side that a frame of the spectrum depends on."""


class SpeakerBlock(nn.Module):
    """A ConvNeXt block, not causal, whose normalized values a speaker scales and shifts.

    Args:
        channels: C.
        hidden: channels between the two linear layers.
        kernel: odd.
    """

    def __init__(self, channels: int, hidden: int, kernel: int, dilation: int = 1) -> None:
        super().__init__()
        reach = kernel // 2 * dilation
        self.depthwise = nn.Conv1d(
            channels, channels, kernel, padding=reach, groups=channels, dilation=dilation
        )
        self.norm = nn.LayerNorm(channels)
        self.expand = nn.Linear(channels, hidden)
        self.contract = nn.Linear(hidden, channels)
        self.gamma = nn.Parameter(torch.ones(channels))
        self.speaker = nn.Linear(SPEAKER_SIZE, 2 * channels)

    def forward(self, x: torch.Tensor, speaker: torch.Tensor) -> torch.Tensor:
        """[B, C, T] and [B, S] -> [B, C, T]."""
        return self.transform(x, self.depthwise(x), speaker)

    def transform(self, x: torch.Tensor, seen: torch.Tensor, speaker: torch.Tensor) -> torch.Tensor:
        """As `forward`, where the convolution has made `seen` ([B, C, T]) of x."""
        scale, shift = self.speaker(speaker)[:, None].chunk(2, dim=-1)
        y = self.norm(seen.transpose(1, 2)) * (1 + scale) + shift
        y = self.contract(functional.gelu(self.expand(y))) * self.gamma
        moved: torch.Tensor = x + y.transpose(1, 2)
        return moved


class PhoneEncoder(nn.Module):
    """Phones with their surroundings: two blocks, then one attention layer, several times.
    `channels`: C."""

    def __init__(self, channels: int, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.embedding = nn.Embedding(PHONES, channels)
        self.blocks = nn.ModuleList(SpeakerBlock(channels, 2 * channels, 5) for _ in range(2))
        self.attention_norm, self.linear_norm, self.norm = (
            nn.LayerNorm(channels) for _ in range(3)
        )
        self.heads_in = nn.Linear(channels, 3 * channels)
        self.heads_out = nn.Linear(channels, channels)
        self.expand = nn.Linear(channels, 2 * channels)
        self.contract = nn.Linear(2 * channels, channels)

    def forward(
        self, phones: torch.Tensor, speaker: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Args: phones: [B, T] int64; speaker: [B, S]; mask: [B, 1, 1, T], False is padding.

        Returns:
            [B, T, C] float32.
        """
        x = self.embedding(phones).transpose(1, 2)
        for block in self.blocks:
            x = block(x, speaker)
        x = x.transpose(1, 2)
        rows, length, channels = x.shape
        for _ in range(self.rounds):
            heads = self.heads_in(self.attention_norm(x))
            shape = (rows, length, 3, HEADS, channels // HEADS)
            query, key, value = heads.view(shape).permute(2, 0, 3, 1, 4)
            heard = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            x = x + self.heads_out(heard.transpose(1, 2).reshape(rows, length, channels))
            x = x + self.contract(functional.gelu(self.expand(self.linear_norm(x))))
        encoded: torch.Tensor = self.norm(x)
        return encoded


class SpeakerTable(nn.Module):
    """Speaker vectors: of stock voices by number, of recordings by their features. `stock`:
    voices."""

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, stock: int) -> None:
        super().__init__()
        self.stock = nn.Embedding(stock, SPEAKER_SIZE)
        self.register_buffer("mean", torch.zeros(FEATURES))
        self.register_buffer("scale", torch.ones(FEATURES))
        self.hidden = nn.Linear(FEATURES, 4 * SPEAKER_SIZE)
        self.out = nn.Linear(4 * SPEAKER_SIZE, SPEAKER_SIZE)

    def forward(self, voices: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Args: voices: [B] int64, -1 for a recording; features: [B, FEATURES] float32.

        Returns:
            [B, S].
        """
        usual = ((features - self.mean) / self.scale).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
        followed = self.out(functional.gelu(self.hidden(usual)))
        return torch.where((voices < 0)[:, None], followed, self.stock(voices.clamp(min=0)))


class ProsodyPredictor(nn.Module):
    """How long each phone lasts, and the pitch and the energy of each frame. `stock`: voices that
    it knows."""

    def __init__(self, stock: int) -> None:
        super().__init__()
        channels = 192
        self.speakers = SpeakerTable(stock)
        self.phones = PhoneEncoder(channels, rounds=6)
        self.duration_in = nn.Conv1d(channels, channels, 3, padding=1)
        self.duration_out = nn.Conv1d(channels, 1, 1)
        self.duration_bias = nn.Linear(SPEAKER_SIZE, 1, bias=False)
        self.contour_in = nn.Conv1d(channels, channels, 1)
        self.blocks = nn.ModuleList(
            SpeakerBlock(channels, 2 * channels, KERNEL, dilation)
            for dilation in (1, 2, 4, 8, 1, 2)
        )
        self.contour_out = nn.Conv1d(channels, 2 * FRAMES_PER_COUNT, 1)
        self.contour_bias = nn.Linear(SPEAKER_SIZE, 2 * FRAMES_PER_COUNT, bias=False)

    def predict_durations(
        self, phones: torch.Tensor, speaker: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Args: phones: [B, T]; speaker: [B, S], of `speakers`; mask: as `PhoneEncoder`'s.

        Returns:
            [B, T, C] the encoded phones, and [B, T] the logarithm of their frames of 25 ms and 1.
        """
        encoded = self.phones(phones, speaker, mask)
        hidden = functional.gelu(self.duration_in(encoded.transpose(1, 2)))
        return encoded, self.duration_out(hidden)[:, 0] + self.duration_bias(speaker)

    def predict_contour(
        self, encoded: torch.Tensor, speaker: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[B, G, C] encoded phones, each as often as it has frames -> [B, F] Hz, [B, F] energy.

        The pitch is about 0 where there is no voice.
        """
        x = self.contour_in(encoded.transpose(1, 2))
        for block in self.blocks:
            x = block(x, speaker)
        made = self.contour_out(x) + self.contour_bias(speaker)[..., None]
        made = made.unflatten(1, (2, FRAMES_PER_COUNT)).transpose(2, 3).flatten(2)
        return made[:, 0] * PITCH_SCALE, made[:, 1] * ENERGY_SCALE


class SpectrumPredictor(nn.Module):
    """Five parts of a spectrum for each frame. `stock`: voices that it knows."""

    def __init__(self, stock: int) -> None:
        super().__init__()
        channels, text = 256, 128
        self.speakers = SpeakerTable(stock)
        self.phones = PhoneEncoder(text, rounds=4)
        self.frames_in = nn.Conv1d(text + 2, channels, KERNEL, padding=KERNEL // 2)
        self.blocks = nn.ModuleList(
            SpeakerBlock(channels, 3 * channels, KERNEL) for _ in range(DECODER_BLOCKS)
        )
        self.norm = nn.LayerNorm(channels)
        self.out = nn.Linear(channels, PARTS * BINS)
        self.speaker_out = nn.Linear(SPEAKER_SIZE, PARTS * BINS, bias=False)

    def encode(
        self, phones: torch.Tensor, speaker: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """[B, T] phones -> [B, T, C]; the other arguments as `predict_durations`'."""
        encoded: torch.Tensor = self.phones(phones, speaker, mask)
        return encoded

    def predict(
        self,
        encoded: torch.Tensor,
        pitch: torch.Tensor,
        energy: torch.Tensor,
        speaker: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Args: encoded: [B, F, C], of each frame's phone; pitch: [B, F] Hz; energy: [B, F];
            speaker: [B, S], of `speakers`.

        Returns:
            Five of [B, F, BINS]: see `harmonic_vocoder.Spectra`.
        """
        x = self.frames_in(self.join_inputs(encoded, pitch, energy))
        for block in self.blocks:
            x = block(x, speaker)
        return self.predict_parts(x, speaker)

    def join_inputs(
        self, encoded: torch.Tensor, pitch: torch.Tensor, energy: torch.Tensor
    ) -> torch.Tensor:
        """What the first layer takes, [B, C, F]; the arguments are `predict`'s."""
        melody = torch.log(1 + pitch.clamp(min=0)) / LOG_SCALE
        parts = [encoded, melody[..., None], energy[..., None] / ENERGY_SCALE]
        return torch.cat(parts, dim=-1).transpose(1, 2)

    def predict_parts(self, x: torch.Tensor, speaker: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What the last block made, [B, C, F], -> the five of `predict`."""
        made = self.out(self.norm(x.transpose(1, 2))) + self.speaker_out(speaker)[:, None]
        parts: tuple[torch.Tensor, ...] = made.split(BINS, dim=-1)
        return parts


@dataclass(frozen=True, slots=True)
class QuartetSpeaker:
    """Who speaks."""

    prosody: torch.Tensor
    """[1, S], of `ProsodyPredictor.speakers`."""
    spectrum: torch.Tensor
    """[1, S], of `SpectrumPredictor.speakers`."""


class QuartetNetwork(nn.Module):
    """Both predictors. `stock`: voices that they know."""

    def __init__(self, stock: int) -> None:
        super().__init__()
        self.prosody = ProsodyPredictor(stock)
        self.spectrum = SpectrumPredictor(stock)

    @torch.inference_mode()
    def find_speaker(self, voice: int | NDArray[np.float32]) -> QuartetSpeaker:
        """A stock voice by its number, or the speaker of a recording by its [FEATURES]."""
        if isinstance(voice, int):
            voices, features = torch.tensor([voice]), torch.zeros(1, FEATURES)
        else:
            voices, features = torch.tensor([-1]), torch.from_numpy(voice)[None]
        tables = (self.prosody.speakers, self.spectrum.speakers)
        return QuartetSpeaker(*(table(voices, features) for table in tables))
