"""Noises that a microphone hears while somebody listens, made of seeded random numbers.

Each is [N] float32 at `RATE` with a peak of 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

RATE = 24_000
Sound = NDArray[np.float32]
Noise = Callable[[np.random.Generator], Sound]


def make_cough(random: np.random.Generator) -> Sound:
    """One to three bursts: a sharp onset of wide noise, then a shorter voiced rest."""
    bursts = []
    for _ in range(int(random.integers(1, 4))):
        length = int(RATE * random.uniform(0.18, 0.3))
        times = np.arange(length) / RATE
        burst = _filter_band(random.standard_normal(length), 400, random.uniform(2500, 4500))
        burst *= np.exp(-times / random.uniform(0.04, 0.08))
        pitch = random.uniform(90, 180) * np.exp(-times)
        voiced = np.sign(np.sin(2 * np.pi * np.cumsum(pitch) / RATE))
        voiced = _filter_band(voiced, 300, 1800) * np.exp(-(((times - 0.12) / 0.05) ** 2))
        bursts += [burst / np.abs(burst).max() + 0.3 * voiced / np.abs(voiced).max()]
        bursts += [np.zeros(int(RATE * random.uniform(0.08, 0.25)))]
    return _scale(np.concatenate(bursts))


def make_knocks(random: np.random.Generator) -> Sound:
    """Two to four knocks on wood."""
    knocks = []
    for _ in range(int(random.integers(2, 5))):
        times = np.arange(int(RATE * random.uniform(0.15, 0.3))) / RATE
        tones = [
            random.uniform(0.3, 1) * np.sin(2 * np.pi * pitch * times)
            for pitch in random.uniform((120, 300, 600), (250, 550, 1400))
        ]
        knocks.append(np.sum(tones, axis=0) * np.exp(-times / random.uniform(0.01, 0.03)))
    return _scale(np.concatenate(knocks))


def make_breath(random: np.random.Generator) -> Sound:
    """A breath into the microphone."""
    length = int(RATE * random.uniform(0.7, 1.4))
    rise = np.sin(np.pi * np.arange(length) / length) ** 2
    return _scale(_filter_band(random.standard_normal(length), 150, 3000) * rise)


def make_typing(random: np.random.Generator) -> Sound:
    """One and a half seconds of a keyboard."""
    sound = np.zeros(int(RATE * 1.5))
    for start in random.integers(0, len(sound) - RATE // 20, 12):
        click = random.standard_normal(RATE // 20) * np.exp(-np.arange(RATE // 20) / (0.004 * RATE))
        sound[start : start + RATE // 20] += random.uniform(0.3, 1) * click
    return _scale(_filter_band(sound, 1000, 9000))


def make_laugh(random: np.random.Generator) -> Sound:
    """Three to six times "ha": breath, then a falling voiced sound with the resonances of an open
    mouth, each quieter than the last."""
    pitch, beats = random.uniform(120, 280), int(random.integers(3, 7))
    laugh = []
    for beat in range(beats):
        length = int(RATE * random.uniform(0.16, 0.22))
        times = np.arange(length) / RATE
        falling = pitch * (1 - 0.05 * beat) * np.exp(-0.8 * times)
        phase = np.cumsum(falling) / RATE
        glottis = 2 * (phase % 1) - 1
        voiced = sum(
            gain * _filter_band(glottis, 0.85 * hz, 1.15 * hz)
            for gain, hz in ((1.0, 750), (0.6, 1250), (0.25, 2600))
        )
        envelope = np.exp(-(((times - 0.09) / 0.04) ** 2))
        breath = _filter_band(random.standard_normal(length), 600, 5000)
        onset = np.exp(-(((times - 0.03) / 0.025) ** 2))
        beat_sound = envelope * voiced / np.abs(voiced).max()
        beat_sound += 0.35 * onset * breath / np.abs(breath).max()
        laugh.append(0.85**beat * beat_sound)
    return _scale(np.concatenate(laugh))


def make_door(random: np.random.Generator) -> Sound:
    """A door that falls shut: the click of its latch, the low blow of its leaf, and the room."""
    sound = np.zeros(int(RATE * 0.9))
    times = np.arange(len(sound)) / RATE
    blow_s = random.uniform(0.06, 0.14)
    after = np.maximum(times - blow_s, 0)
    click = random.standard_normal(len(sound)) * np.exp(-times / 0.004)
    sound += 0.3 * _filter_band(click, 1500, 6000)
    for pitch in random.uniform((45, 90, 180), (80, 160, 350)):
        ringing = np.sin(2 * np.pi * pitch * after) * np.exp(-after / random.uniform(0.05, 0.12))
        sound += ringing * (times >= blow_s)
    room = _filter_band(random.standard_normal(len(sound)), 80, 1500)
    sound += 0.4 * room / np.abs(room).max() * np.exp(-after / 0.15) * (times >= blow_s)
    return _scale(sound)


NOISES: dict[str, Noise] = {
    "cough": make_cough,
    "knocks": make_knocks,
    "breath": make_breath,
    "typing": make_typing,
    "laugh": make_laugh,
    "door": make_door,
}


def mix_babble(voices: list[Sound], seconds: float) -> Sound:
    """Several people who talk at once, each from somewhere in what it says, over and over."""
    mixed = np.zeros(round(seconds * RATE))
    for number, voice in enumerate(voices):
        shifted = np.roll(voice, number * len(voice) // len(voices))
        mixed += np.resize(shifted / np.sqrt(np.mean(shifted**2)), len(mixed))
    return _scale(mixed)


def _filter_band(sound: NDArray[np.float64], low_hz: float, high_hz: float) -> NDArray[np.float64]:
    """Keep a band, with soft edges."""
    spectrum = np.fft.rfft(sound)
    hz = np.fft.rfftfreq(len(sound), 1 / RATE)
    gain = 1 / np.sqrt((1 + (low_hz / np.maximum(hz, 1)) ** 4) * (1 + (hz / high_hz) ** 4))
    kept: NDArray[np.float64] = np.fft.irfft(spectrum * gain, len(sound))
    return kept


def _scale(sound: NDArray[np.float64]) -> Sound:
    scaled: Sound = (sound / np.abs(sound).max()).astype(np.float32)
    return scaled
