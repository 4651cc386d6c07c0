"""The two teachers: hibari's voice `heart`, and Kokoro-82M with all of its English voices.

Both know what others must measure: how long each phone lasts and where the pitch is. These values
lie inside Kokoro's network and become outputs of it.

Letters: T phones, F frames of 12.5 ms, N samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime

from cantata_layers.onnx_outputs import add_output, find_values
from cantata_models.solo.training.natural.packages import PackageMissing, read_network
from cantata_models.solo.training.natural.shards import AnnotatedSpeech, measure_energy

PEAK = 0.7
_DURATIONS = b"/Clip_output_0"
"""Ends the name of the value inside both networks that holds them."""
_PITCH = b"/encoder/Reshape_output_0"
"""Inside Kokoro's network; hibari returns its own."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TeachingVoice:
    """One voice of a teacher, or a mixture of several."""

    name: str
    british: bool
    styles: Floats | None = None
    """[R, 256], as `packages.read_styles` has them; None for hibari."""


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """A text as a teacher gets it."""

    text: str
    phones: Sequence[int]
    """[T], with the padding at both ends."""
    speed: float
    seed: int


class SpeechTeacher(Protocol):
    """Reads sentences aloud."""

    def read(self, voice: TeachingVoice, reading: ScriptLine) -> AnnotatedSpeech:
        """The sound with its annotations."""


def annotate(
    voice: TeachingVoice, reading: ScriptLine, sound: Floats, durations: Floats, pitch: Floats
) -> AnnotatedSpeech:
    """Brings a teacher's outputs into one form, and the sound to `PEAK`.

    Args:
        voice: who spoke.
        reading: what was read.
        sound: [N].
        durations: [T] frames of 25 ms.
        pitch: [F] Hz.

    Raises:
        ValueError: the lengths do not agree.
    """
    loud = sound * (PEAK / max(float(np.abs(sound).max()), 1e-4))
    return AnnotatedSpeech(
        voice=voice.name,
        text=reading.text,
        speed=reading.speed,
        phones=np.asarray(reading.phones, np.int16),
        durations=np.round(durations).astype(np.int16),
        pitch=pitch.astype(np.float32),
        energy=measure_energy(loud),
        samples=np.round(loud * 32767).astype(np.int16),
    )


class HibariTeacher:
    """hibari's `heart`, about a hundred times as fast as it speaks.

    Raises:
        PackageMissing: its package is not installed.
    """

    def __init__(self) -> None:
        if find_spec("hibari") is None:
            raise PackageMissing("hibari-tts is not installed; run `make install`")
        self._session = _open_network((files("hibari") / "assets/hibari.onnx").read_bytes())

    def read(self, voice: TeachingVoice, reading: ScriptLine) -> AnnotatedSpeech:
        """The sound with its annotations; `reading.seed` chooses the noise."""
        from hibari import dsp  # imports SciPy where it is installed

        feed = {
            "ids": np.array([reading.phones], np.int64),
            "speed": np.array([reading.speed], np.float32),
        }
        *spectra, durations = self._session.run(None, feed)
        *parts, pitch = (value[0] for value in spectra)
        sound = dsp.synth(*parts, pitch, np.random.default_rng(reading.seed))
        return annotate(voice, reading, sound, durations.ravel(), pitch)


class KokoroTeacher:
    """Kokoro-82M in 8 bits, about as fast as it speaks.

    Args:
        packages: folder with the pinned packages.

    Raises:
        PackageMissing: they are not there.
    """

    def __init__(self, packages: Path) -> None:
        self._session = _open_network(read_network(packages), _PITCH)

    def read(self, voice: TeachingVoice, reading: ScriptLine) -> AnnotatedSpeech:
        """The sound with its annotations; it has no chance in it, so the seed changes nothing."""
        assert voice.styles is not None
        row = voice.styles[min(len(reading.phones) - 2, len(voice.styles)) - 1]
        feed = {
            "tokens": np.array([reading.phones], np.int64),
            "style": row[None],
            "speed": np.array([reading.speed], np.float32),
        }
        sound, durations, pitch = (value.ravel() for value in self._session.run(None, feed))
        return annotate(voice, reading, sound, durations, pitch)


def _open_network(model: bytes, *more: bytes) -> onnxruntime.InferenceSession:
    """A session on one thread that also returns the durations, and more values from inside."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Threads that wait in a loop cost more than the network.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    durations = next(find_values(model, _DURATIONS))
    for name in (durations, *more):
        model = add_output(model, name)
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
