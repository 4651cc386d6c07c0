"""From spectra and a pitch to sound, a few frames at a time.

A network predicts, for each frame of 12.5 ms, five parts of a spectrum and a pitch. A pulse train
at that pitch is filtered by the first two, noise is shaped by the third, and the last two are added
as they are; an inverse STFT makes the sound (`hibari.dsp` in the package hibari-tts 0.2, which does
so for a whole sentence). Here each block of frames leaves as soon as it is made; on the size of the
blocks, samples depend by no more than rounding.

Letters: F frames, B bins, N samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain, repeat
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import RequestFailed

Floats = NDArray[np.float32]

SAMPLE_RATE = 24_000
HOP = 300
SIZE = 1200
OVERLAP = SIZE // HOP
BINS = SIZE // 2 + 1
_HALF = SIZE // 2
_MIN_PITCH_HZ = 40.0
"""Below, a frame is unvoiced."""
_TOP_HZ = 11_000.0
"""No harmonic is higher."""
_MAX_LOG = 7.0
_NEAR_PEAK = 2e-3
_WINDOW: Floats = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SIZE) / SIZE)).astype(np.float32)
_SOURCE_WINDOW: Floats = _WINDOW / (SIZE / 4)
"""A cosine of amplitude 1 has a peak of 1, so that the filter's magnitude is the harmonic's."""


Noise = Callable[[int, int], NDArray[np.complex64]]
"""Of the frames [begin, end), called in their order: [B, end - begin], variance 2."""


@dataclass(frozen=True, slots=True)
class Spectra:
    """Some frames as a network predicts them; each [B, F] but the pitch."""

    harmonic: Floats
    """Log magnitude of what filters the pulses."""
    rotation: Floats
    """Its phase: pi times the hyperbolic tangent of this."""
    noise: Floats
    """Log magnitude of the noise."""
    free: Floats
    """Log magnitude of what is added as it is."""
    phase: Floats
    """Its phase in radians."""
    pitch: Floats
    """[F] Hz."""

    @classmethod
    def of(cls, outputs: Sequence[Floats]) -> Spectra:
        """From a network's outputs in their order, a batch of one. Raises RequestFailed: they have
        other shapes."""
        made = cls(*(output[0] for output in outputs))
        frames = made.pitch.shape[-1]
        parts = (made.harmonic, made.rotation, made.noise, made.free, made.phase)
        if any(part.shape != (BINS, frames) for part in parts):
            raise RequestFailed("the network's outputs are not spectra for this vocoder")
        return made

    def predict(self, begin: int, end: int) -> Spectra:
        return Spectra(*(getattr(self, field.name)[..., begin:end] for field in fields(self)))


class SpectraPredictor(Protocol):
    """A sentence's spectra, predicted block by block; `Spectra` are one that is whole already."""

    @property
    def pitch(self) -> Floats:
        """[F] Hz of the whole sentence."""
        ...

    def predict(self, begin: int, end: int) -> Spectra:
        """Frames [begin, end)."""
        ...


def draw_noise(seed: int, frames: int) -> Noise:
    """A sentence's noise in one array, as the package draws it."""
    drawn = np.random.default_rng(seed).standard_normal((BINS, 2 * frames), dtype=np.float32)
    whole = drawn.view(np.complex64)
    return lambda begin, end: whole[:, begin:end]


def stream_noise(seed: int) -> Noise:
    """Noise that is drawn block by block, so that long sentences begin as early as short ones."""
    rng = np.random.default_rng(seed)

    def draw(begin: int, end: int) -> NDArray[np.complex64]:
        drawn = rng.standard_normal((end - begin, 2 * BINS), dtype=np.float32)
        return drawn.view(np.complex64).T

    return draw


def synthesize(
    predictor: SpectraPredictor, noise: Noise, blocks: Sequence[int]
) -> Iterator[Floats]:
    """The sound of a sentence, F * HOP samples in all.

    Args:
        predictor: of at least one frame.
        blocks: frames that are made at once, first to last; the last number stands for all blocks
            to come. The last part has less sound.

    Yields:
        [N] samples, each part as soon as it is final.
    """
    frames = len(predictor.pitch)
    pulses = np.pad(make_pulses(predictor.pitch), _HALF, mode="reflect")
    scale = np.reciprocal(np.maximum(_sum_windows(frames), np.float32(1e-11)))
    tail = np.zeros((OVERLAP - 1, HOP), np.float32)
    left_out = _HALF  # samples before the first frame's middle
    for begin, end in _cut_blocks(frames, blocks):
        heard = pulses[begin * HOP : (end - 1) * HOP + SIZE]
        rows = _make_frames(predictor.predict(begin, end), heard, noise(begin, end))
        total = np.zeros((end - begin + OVERLAP - 1, HOP), np.float32)
        total[: OVERLAP - 1] = tail
        for hop in reversed(range(OVERLAP)):  # earlier frames first, whatever the block
            total[hop : hop + end - begin] += rows[:, hop]
        final = len(total) if end == frames else end - begin
        tail = total[end - begin :]
        sound = (total[:final] * scale[begin : begin + final]).reshape(-1)[left_out:]
        left_out = max(left_out - final * HOP, 0)
        yield sound[: len(sound) - _HALF + HOP] if end == frames else sound


def _cut_blocks(frames: int, blocks: Iterable[int]) -> Iterator[tuple[int, int]]:
    sizes = list(blocks)
    begin = 0
    for size in chain(sizes, repeat(sizes[-1])):
        end = min(begin + size, frames)
        yield begin, end
        if end == frames:
            return
        begin = end


def make_pulses(pitch: Floats) -> Floats:
    """[F] Hz -> [F * HOP]: all harmonics up to `_TOP_HZ`, each of amplitude 1; 0 where unvoiced.

    The sum of cos(h t) for h = 1..H is sin((H + 1/2) t) / (2 sin(t / 2)) - 1/2.
    """
    hertz = _draw_pitch(pitch)
    voiced = hertz > _MIN_PITCH_HZ
    hertz = np.maximum(hertz, np.float32(_MIN_PITCH_HZ))
    turns = np.cumsum(hertz, dtype=np.float64) / SAMPLE_RATE
    angle = (2 * np.pi * (turns % 1.0)).astype(np.float32)
    harmonics = np.floor(np.float32(_TOP_HZ) / hertz) + np.float32(0.5)
    below = 2 * np.sin(angle / 2)
    near_peak = np.abs(below) <= _NEAR_PEAK
    below[near_peak] = 1
    train = np.where(near_peak, harmonics, np.sin(harmonics * angle) / below) - np.float32(0.5)
    return np.where(voiced, train, np.float32(0))


def _draw_pitch(pitch: Floats) -> Floats:
    """[F] Hz in the middles of frames -> [F * HOP], on lines between them.

    WHY in float32 and in this order, as the package does: the number of a sample's harmonics is cut
    off to a whole one, so the last bit of its pitch can be heard.
    """
    share = (((np.arange(HOP) + 0.5) / HOP - 0.5) % 1.0).astype(np.float32)
    padded = np.pad(pitch, 1, mode="edge")[:, None]
    middle = HOP // 2
    first = padded[:-2] * (1 - share[:middle]) + padded[1:-1] * share[:middle]
    second = padded[1:-1] * (1 - share[middle:]) + padded[2:] * share[middle:]
    hertz: Floats = np.concatenate([first, second], axis=1).reshape(-1)
    return hertz


def _make_frames(spectra: Spectra, pulses: Floats, noise: NDArray[np.complex64]) -> Floats:
    """[frames, OVERLAP, HOP]: windowed sound of some frames, before they are added up."""
    segments = np.lib.stride_tricks.sliding_window_view(pulses, SIZE)[::HOP] * _SOURCE_WINDOW
    spectrum = np.fft.rfft(segments, axis=1).astype(np.complex64).T
    turn = np.float32(np.pi) * np.tanh(spectra.rotation)
    spectrum = spectrum * _from_polar(spectra.harmonic, turn)
    spectrum += noise * _to_magnitude(spectra.noise)
    spectrum += _from_polar(spectra.free, spectra.phase)
    frames = np.fft.irfft(spectrum.T, SIZE, axis=1).astype(np.float32) * _WINDOW
    return frames.reshape(-1, OVERLAP, HOP)


def _from_polar(logs: Floats, angle: Floats) -> NDArray[np.complex64]:
    made = np.empty(logs.shape, np.complex64)
    magnitude = _to_magnitude(logs)
    made.real, made.imag = magnitude * np.cos(angle), magnitude * np.sin(angle)
    return made


def _to_magnitude(logs: Floats) -> Floats:
    magnitude: Floats = np.exp(np.minimum(logs, np.float32(_MAX_LOG)))
    return magnitude


def _sum_windows(frames: int) -> Floats:
    """[frames + OVERLAP - 1, HOP]: sums of the squared windows; less than inside at both ends."""
    squares = (_WINDOW * _WINDOW).reshape(OVERLAP, HOP)
    total = np.zeros((frames + OVERLAP - 1, HOP), np.float32)
    for hop in range(OVERLAP):
        total[hop : hop + frames] += squares[hop]
    return total
