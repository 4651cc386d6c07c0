"""The voice's stage: one network for a whole sentence, then its sound part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import ConfigError, RequestFailed
from cantata_layers.harmonic_vocoder import SAMPLE_RATE, Spectra, draw_noise, synthesize
from cantata_layers.misaki.speech import SentenceInput, add_word_times
from cantata_layers.onnx_outputs import add_output, find_values
from cantata_models.hibari.voices import list_voices

FRAME_S = 0.025
"""By which the network counts the durations of phones."""
BLOCK = 40
"""Frames of 12.5 ms in one part of the sound."""
DURATIONS = b"/Clip_output_0"
"""Ends the name of the value inside the network that holds them."""


class HibariNetwork:
    """One voice's network in ONNX Runtime, with the durations of phones as one more output.

    Raises:
        ConfigError: the file is not a voice of hibari's.
    """

    def __init__(self, file: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        model = file.read_bytes()
        durations = next(find_values(model, DURATIONS), None)
        if durations is None:
            raise ConfigError(f"{file}: not a voice of hibari's (it has no durations)")
        try:
            self._session = onnxruntime.InferenceSession(
                add_output(model, durations), options, ["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's errors have no common type
            raise ConfigError(f"{file}: not a voice of hibari's ({error})") from error

    def predict(self, inputs: SentenceInput) -> tuple[Spectra, NDArray[np.float32]]:
        """The spectra of a sentence, and [T] durations of its phones in frames of `FRAME_S`."""
        feed = {"ids": inputs.phones[None], "speed": np.array([inputs.speed], np.float32)}
        *parts, durations = self._session.run(None, feed)
        return Spectra.of(parts), durations.ravel()


@dataclass(frozen=True, slots=True)
class HibariVoices:
    """Implements `feed_forward.ConcurrentSynthesizer`: all voices of a checkpoint."""

    networks: dict[str, HibariNetwork]
    sample_rate: int = SAMPLE_RATE
    channels: int = 1
    is_concurrent: bool = True
    """A part takes one core."""

    def synthesize(self, inputs: SentenceInput) -> Iterator[Pcm]:
        """Half a second at a time; the times of all words come with the first part."""
        if not isinstance(inputs.voice, str) or inputs.voice not in self.networks:
            raise RequestFailed(f"the stage has no voice {inputs.voice!r}")
        spectra, durations = self.networks[inputs.voice].predict(inputs)
        noise = draw_noise(inputs.seed, len(spectra.pitch))
        parts = synthesize(spectra, noise, (BLOCK,))
        return add_word_times(inputs, parts, durations, FRAME_S, SAMPLE_RATE)


def load_voices(checkpoint: Path, device: torch.device) -> HibariVoices:
    """The stage's factory. Raises ConfigError: no voice is there, or the device is not the CPU."""
    if device.type != "cpu":
        raise ConfigError(f"hibari runs on the CPU; its deployment says {device}")
    return HibariVoices(
        {voice.name: HibariNetwork(voice.file) for voice in list_voices(checkpoint)}
    )
