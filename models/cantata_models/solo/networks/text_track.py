"""Text to track: what the talker is to say, one row per frame, and how long each phone lasts.

Letters: B batch, N phones, S slots of 20 ms, T frames of 80 ms, D the talker's hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from cantata_models.solo.config import TextConfig
from cantata_models.solo.networks.layers import ConvNextBlock, TrainableRowLinear
from cantata_models.solo.text.tokens import SIL_ID

SLOT_S = 0.02
SLOTS_PER_FRAME = 4
MIN_SPEED = 0.5
MAX_SPEED = 2.0
END_SILENCE_SLOTS = 6
"""The track ends with at least this much silence: its end is the end of the utterance, and the
decoder's lag keeps the last 15 ms back."""
DISTINCT_END_SLOTS = 2
DISTINCT_PHONE_SLOTS = 3.0
"""Played twice as fast, a phone so long still lasts 30 ms."""
DISTINCT_SLOWEST = 1.25
"""Times its usual length, at most, for a long phone."""
PLACE_FEATURES = 3


@dataclass(frozen=True, slots=True)
class TextTrack:
    """What one utterance's talker is conditioned on."""

    rows: torch.Tensor
    """[T, D] float32, one row per frame."""
    slots: torch.Tensor
    """[N] int64: slots of 20 ms per phone; the sum is 4 * T."""

    @property
    def frames(self) -> int:
        """T."""
        return self.rows.shape[0]


@dataclass(frozen=True, slots=True)
class TrackPlan:
    """An utterance whose durations are settled and whose rows are still to be made."""

    slots: torch.Tensor
    """[N] int64: slots of 20 ms per phone; the sum is 4 * T."""
    expanded: torch.Tensor
    """[4 * T, C] float32: the phones, encoded, slot by slot."""

    @property
    def frames(self) -> int:
        """T."""
        return len(self.expanded) // SLOTS_PER_FRAME


class SpeakerEncoder(nn.Module):
    """Speaker vectors, a stock voice's or a recording's -> [B, speaker_channels]."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(config.speaker_size))
        self.register_buffer("std", torch.ones(config.speaker_size))
        self.up = nn.Linear(config.speaker_size, config.speaker_channels)
        self.down = nn.Linear(config.speaker_channels, config.speaker_channels)

    def normalized(self, vectors: torch.Tensor) -> torch.Tensor:
        """[B, F] -> [B, F], zero mean and unit deviation over the training speakers."""
        return (vectors - self.mean) / self.std

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        inner = functional.gelu(self.up(self.normalized(vectors)))
        return torch.as_tensor(torch.tanh(self.down(inner)))


class TrackPhoneEncoder(nn.Module):
    """Phones with their word starts, the question flag and the speaker -> [B, N, channels]."""

    def __init__(self, config: TextConfig, channels: int, blocks: int) -> None:
        super().__init__()
        self.phone = nn.Embedding(config.phones, channels)
        self.word_start = nn.Embedding(2, channels)
        self.question = nn.Embedding(2, channels)
        self.speaker = nn.Linear(config.speaker_channels, channels)
        self.blocks = nn.ModuleList(
            ConvNextBlock(channels, 2 * channels, config.kernel) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(channels)

    def forward(
        self,
        phones: torch.Tensor,
        word_start: torch.Tensor,
        question: torch.Tensor,
        speaker: torch.Tensor,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        """phones and word_start [B, N], question [B], encoded speaker [B, speaker_channels], mask
        [B, N, 1] of 0 and 1."""
        x = self.phone(phones) + self.word_start(word_start.long())
        x = (x + (self.question(question.long()) + self.speaker(speaker)).unsqueeze(1)) * mask
        for block in self.blocks:
            x = block(x, mask)
        normed: torch.Tensor = self.norm(x)
        return normed


def slot_places(slots: torch.Tensor) -> torch.Tensor:
    """Where each slot lies in its phone.

    Args:
        slots: [N] int64 slots per phone.

    Returns:
        [S, 3] float32: the fraction before the slot's middle, the fraction after it, and the
        phone's length (slots / 10).
    """
    lengths = torch.repeat_interleave(slots, slots)
    starts = torch.repeat_interleave(torch.cumsum(slots, 0) - slots, slots)
    inside = torch.arange(len(lengths), device=slots.device) - starts + 0.5
    before = inside / lengths
    return torch.stack([before, 1 - before, lengths / 10], dim=1)


class TextTrackEncoder(nn.Module):
    """Phones -> durations -> the talker's track.

    The duration side has an encoder of its own, so that training one never moves the other.
    """

    stock_speakers: torch.Tensor

    def __init__(self, config: TextConfig, voices: int, hidden_size: int) -> None:
        super().__init__()
        self.register_buffer("stock_speakers", torch.zeros(voices, config.speaker_size))
        self.speaker = SpeakerEncoder(config)
        self.durations = TrackPhoneEncoder(config, config.duration_channels, config.duration_blocks)
        self.duration_out = nn.Linear(config.duration_channels, 1)
        self.phones = TrackPhoneEncoder(config, config.channels, config.phone_blocks)
        self.place = nn.Linear(PLACE_FEATURES, config.channels)
        self.slot_blocks = nn.ModuleList(
            ConvNextBlock(config.channels, 2 * config.channels, config.kernel)
            for _ in range(config.slot_blocks)
        )
        self._reach = config.slot_blocks * (config.kernel // 2)
        self.fold = TrainableRowLinear(SLOTS_PER_FRAME * config.channels, hidden_size)
        self.out_norm = nn.LayerNorm(hidden_size)

    def log_durations(
        self,
        phones: torch.Tensor,
        word_start: torch.Tensor,
        question: torch.Tensor,
        speaker: torch.Tensor,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        """Returns [B, N]: log(slots + 1) of every phone at the speaker's usual pace. Arguments as
        `TrackPhoneEncoder`'s."""
        encoded = self.durations(phones, word_start, question, speaker, mask)
        return torch.as_tensor(self.duration_out(encoded).squeeze(-1))

    def expand(self, encoded: torch.Tensor, slots: torch.Tensor, length: int) -> torch.Tensor:
        """Phones to slots for one utterance: [N, C] and [N] -> [length, C], zeros at the end."""
        rows = torch.repeat_interleave(encoded, slots, dim=0) + self.place(slot_places(slots))
        return functional.pad(rows, (0, 0, 0, length - len(rows)))

    def rows(self, expanded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """[B, S, C] slots and their [B, S, 1] mask -> [B, S / 4, D] track rows."""
        x = expanded
        for block in self.slot_blocks:
            x = block(x, mask)
        return self._fold_frames(x)

    def _fold_frames(self, x: torch.Tensor) -> torch.Tensor:
        """[B, S, C] -> [B, S / 4, D]."""
        batch, length, channels = x.shape
        folded = x.reshape(batch, length // SLOTS_PER_FRAME, SLOTS_PER_FRAME * channels)
        track: torch.Tensor = self.out_norm(self.fold(folded))
        return track

    @torch.inference_mode()
    def make_rows(self, plan: TrackPlan, first: int, last: int) -> torch.Tensor:
        """The rows of frames `first` to `last`, which is not among them: [last - first, D].

        The same bits in whatever parts an utterance's rows are made: as many slots on each side as
        the blocks look around are put through the blocks too.
        """
        start, end = first * SLOTS_PER_FRAME, last * SLOTS_PER_FRAME
        before = min(self._reach, start)
        x = plan.expanded[None, start - before : end + self._reach]
        for block in self.slot_blocks:
            x = block(x)
        return self._fold_frames(x[:, before : before + end - start])[0]

    def forward_track(
        self,
        phones: torch.Tensor,
        word_start: torch.Tensor,
        question: bool,
        speaker: torch.Tensor,
        speed: float = 1.0,
        *,
        distinct: bool = False,
    ) -> TextTrack:
        """One utterance's whole track; arguments and errors as `plan`'s."""
        plan = self.plan(phones, word_start, question, speaker, speed, distinct=distinct)
        return TextTrack(rows=self.make_rows(plan, 0, plan.frames), slots=plan.slots)

    @torch.inference_mode()
    def plan(
        self,
        phones: torch.Tensor,
        word_start: torch.Tensor,
        question: bool,
        speaker: torch.Tensor,
        speed: float = 1.0,
        *,
        distinct: bool = False,
    ) -> TrackPlan:
        """Encode one utterance's phones and predict how long they last.

        Args:
            phones: [N] int64 ids, N >= 1; it should start and end with SIL.
            word_start: [N] bool, true at the first phone of every word.
            speaker: [F] float32, a row of `stock_speakers` or a recording's speaker vector.
            speed: 0.5 (slow) to 2 (fast); scales the durations.
            distinct: as `whole_slots` has it.

        Raises:
            ValueError: no phones, lengths that differ, or a speed outside the range.
        """
        if phones.ndim != 1 or len(phones) == 0 or phones.shape != word_start.shape:
            raise ValueError("phones and word_start must be equally long and not empty")
        if not MIN_SPEED <= speed <= MAX_SPEED:
            raise ValueError(f"speed must be within {MIN_SPEED} and {MAX_SPEED}, not {speed}")
        device = self.duration_out.weight.device
        ids, starts = phones.to(device)[None], word_start.to(device)[None]
        flags = torch.tensor([question], device=device)
        speakers = self.speaker(speaker.to(device)[None])
        mask = torch.ones(1, len(phones), 1, device=device)
        predicted = self.log_durations(ids, starts, flags, speakers, mask)[0]
        slots = whole_slots(predicted, phones.to(device), speed, distinct=distinct)
        encoded = self.phones(ids, starts, flags, speakers, mask)[0]
        return TrackPlan(slots, self.expand(encoded, slots, int(slots.sum())))


def whole_slots(
    log_durations: torch.Tensor, phones: torch.Tensor, speed: float, *, distinct: bool = False
) -> torch.Tensor:
    """Rounds durations to whole slots.

    The running sum is rounded, not each phone, so that errors do not add up to a change of pace.
    A phone keeps at least one slot, a pause may vanish, and the last phone grows until the sum
    is a whole number of frames (with END_SILENCE_SLOTS of silence if it is a SIL).

    Args:
        log_durations: [N] float32, log(slots + 1) at normal speed.
        phones: [N] int64 ids.
        speed: divides the durations.
        distinct: give time of pauses and long phones to short phones, in the same time as a whole
            or a frame more, for speech that is played faster.

    Returns:
        [N] int64.
    """
    wanted = (log_durations.exp() - 1).clamp(min=0) / speed
    usual = _round_slots(wanted, phones, END_SILENCE_SLOTS)
    if not distinct:
        return usual
    total = int(usual.sum())
    slots = _round_slots(_separate(wanted, phones, total), phones, DISTINCT_END_SLOTS)
    slots[-1] += max(0, total - int(slots.sum()))
    return slots


def _round_slots(wanted: torch.Tensor, phones: torch.Tensor, end: int) -> torch.Tensor:
    """[N] float slots -> [N] int64, with `end` slots of silence or more after the last phone."""
    ends = torch.round(torch.cumsum(wanted.double(), 0)).long()
    slots = torch.diff(ends, prepend=ends.new_zeros(1))
    slots = torch.maximum(slots, (phones != SIL_ID).long())
    if phones[-1] == SIL_ID:
        slots[-1] = slots[-1].clamp(min=end)
    slots[-1] += -slots.sum() % SLOTS_PER_FRAME
    return slots


def _separate(wanted: torch.Tensor, phones: torch.Tensor, total: int) -> torch.Tensor:
    """Halves pauses, ends at once, lengthens short phones, and scales the long ones so that all
    of it and the end take `total` slots."""
    silent = phones == SIL_ID
    min_slots = torch.full_like(wanted, DISTINCT_PHONE_SLOTS)
    changed = torch.where(silent, wanted / 2, torch.maximum(wanted, min_slots))
    if silent[-1]:
        changed[-1] = 0
    long = ~silent & (wanted > min_slots)
    room = total - DISTINCT_END_SLOTS - 1 - changed[~long].sum()
    scale = (room / changed[long].sum().clamp(min=1)).clamp(max=DISTINCT_SLOWEST)
    return torch.where(long, torch.maximum(changed * scale, min_slots), changed)
