"""Sentences that a voice reads, with the times of their words, under conditions that hurt.

Letters: N samples at `SPEECH_RATE`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import soxr
import torch

from cantata.contract.data.request import SpeechRequest
from cantata.contract.data.transcripts import SPEECH_RATE
from cantata.contract.model.recognizer import Sound
from cantata_bench.transcription.recordings import ReadSentence
from cantata_bench.voice_quality.run import read_sentences
from cantata_layers.misaki.speech import SentenceInput
from cantata_models.hibari.request_builder import load_builder
from cantata_models.hibari.voice import load_voices
from cantata_models.hibari.voices import find_package_files

VOICE = "heart"
PEAK = 0.5
EVERY = 3
"""Of the 60 sentences by which voices are judged."""


@cache
def spoken_sentences() -> tuple[ReadSentence, ...]:
    """Twenty sentences, 218 words."""
    folder = find_package_files()
    assert folder is not None
    builder, voices = load_builder(folder), load_voices(folder, torch.device("cpu"))
    spoken = []
    for sentence in read_sentences(None)[::EVERY]:
        sounds: list[Sound] = []
        starts: list[float] = []
        length = 0
        for piece in builder.build("r", SpeechRequest(sentence.text, VOICE, seed=0)):
            inputs = piece.inputs["voice"]
            assert isinstance(inputs, SentenceInput)
            begin_s = length / voices.sample_rate
            for part in voices.synthesize(inputs):
                starts += [begin_s + word.start_s for word in part.words]
                sounds.append(part.samples[:, 0])
                length += len(part.samples)
        sound = soxr.resample(np.concatenate(sounds), voices.sample_rate, SPEECH_RATE)
        loud = (sound * (PEAK / np.abs(sound).max())).astype(np.float32)
        spoken.append(ReadSentence(VOICE, sentence.text, loud, tuple(starts)))
    return tuple(spoken)


def make_pink_noise(samples: int, seed: int) -> Sound:
    """[N] with as much power in each octave; its root mean square is 1."""
    white = np.fft.rfft(np.random.default_rng(seed).standard_normal(samples))
    frequencies = np.maximum(np.fft.rfftfreq(samples), 1 / samples)
    pink = np.fft.irfft(white / np.sqrt(frequencies), samples)
    noise: Sound = (pink / pink.std()).astype(np.float32)
    return noise


def add_pink_noise(sound: Sound, decibels: float, seed: int) -> Sound:
    """A sound that is louder than noise by so many decibels."""
    level = np.sqrt(np.mean(np.square(sound))) * 10 ** (-decibels / 20)
    noisy: Sound = sound + np.float32(level) * make_pink_noise(len(sound), seed)
    return noisy
