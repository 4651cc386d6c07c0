"""A listener that records when sound arrives, and computes what a player would have done with
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cantata_bench.results import RESERVES_S, ListenedRequest

AUDIBLE = 0.01
"""Level at which sound begins, as a part of full scale: -40 dBFS."""
_FULL_SCALE = 32768

Arrival = tuple[float, float]
"""When a packet arrived and how long its sound is, in seconds."""


@dataclass(slots=True)
class Listener:
    """Takes one answer's bytes: signed 16 bit, little endian."""

    keep_sound: bool = False
    sample_rate: int = 0
    """Hz; known with the answer's head."""
    channels: int = 1
    header_s: float | None = None
    arrivals: list[Arrival] = field(default_factory=list)
    sound: bytearray = field(default_factory=bytearray)
    onset: tuple[int, float] | None = None
    """Packet in which sound begins, and how far in."""
    timeline: dict[str, float] = field(default_factory=dict)
    """Where the first packet's time went, as the server reports it."""
    _rest: bytes = b""

    def head(self, at_s: float, sample_rate: int, channels: int) -> None:
        """The answer begins."""
        self.header_s = at_s
        self.sample_rate, self.channels = sample_rate, channels

    def packet(self, at_s: float, data: bytes) -> float:
        """Some sound; packets may be cut anywhere. Returns its length in seconds."""
        block = 2 * self.channels
        data = self._rest + data
        whole = len(data) - len(data) % block
        self._rest = data[whole:]
        if not whole:
            return 0.0
        audio_s = whole / block / self.sample_rate
        if self.onset is None:
            samples = np.frombuffer(data[:whole], dtype="<i2")
            loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > AUDIBLE * _FULL_SCALE)
            if len(loud):
                offset_s = int(loud[0]) // self.channels / self.sample_rate
                self.onset = (len(self.arrivals), offset_s)
        self.arrivals.append((at_s, audio_s))
        if self.keep_sound:
            self.sound += data[:whole]
        return audio_s

    def record(
        self, sent_s: float, text: str, refusals: int, words: int = 0, word_errors: float = 0.0
    ) -> ListenedRequest:
        """The finished request; one without sound has failed."""
        if not self.arrivals:
            return ListenedRequest(
                outcome="failed",
                error="no sound",
                sent_s=sent_s,
                characters=len(text),
                refusals=refusals,
            )
        intervals = np.diff([at_s for at_s, _ in self.arrivals])
        return ListenedRequest(
            outcome="spoken",
            sent_s=sent_s,
            characters=len(text),
            refusals=refusals,
            header_s=self.header_s or 0.0,
            ttfp_s=self.arrivals[0][0],
            onset_s=onset_s(self.arrivals, self.onset),
            e2e_s=self.arrivals[-1][0],
            audio_s=sum(audio_s for _, audio_s in self.arrivals),
            packets=len(self.arrivals),
            interval_p50_s=float(np.median(intervals)) if len(intervals) else 0.0,
            interval_max_s=float(intervals.max(initial=0.0)),
            underruns_s=tuple(underrun_s(self.arrivals, reserve) for reserve in RESERVES_S),
            timeline=self.timeline,
            words=words,
            word_errors=word_errors,
        )


def underrun_s(arrivals: Sequence[Arrival], reserve_s: float) -> float:
    """How long a player stalls that starts `reserve_s` after the first packet."""
    return _play(arrivals, reserve_s)[1]


def heard_at_s(arrivals: Sequence[Arrival]) -> float:
    """When a player without a reserve has played all of it."""
    starts, _ = _play(arrivals, 0.0)
    return starts[-1] + arrivals[-1][1]


def onset_s(arrivals: Sequence[Arrival], onset: tuple[int, float] | None) -> float:
    """When that player plays the first audible sample; of silence, the end."""
    if onset is None:
        return heard_at_s(arrivals)
    packet, offset_s = onset
    return _play(arrivals, 0.0)[0][packet] + offset_s


def _play(arrivals: Sequence[Arrival], reserve_s: float) -> tuple[list[float], float]:
    """When each packet begins to play, and how long the player stalled in total."""
    playout_deadline_s = arrivals[0][0] + reserve_s
    starts: list[float] = []
    still_s = 0.0
    for arrived_s, audio_s in arrivals:
        late_s = max(0.0, arrived_s - playout_deadline_s)
        still_s += late_s
        starts.append(playout_deadline_s + late_s)
        playout_deadline_s += late_s + audio_s
    return starts, still_s
