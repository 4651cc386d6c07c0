"""The voice's stage in its ONNX form: one network makes the sound of a whole sentence.

Letters: T phones, N samples.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import ConfigError
from cantata_layers.misaki.timing import time_words
from cantata_layers.onnx_outputs import add_output, find_values
from cantata_models.kokoro.config import MAX_PHONES, SAMPLE_RATE, STYLE, find_network
from cantata_models.kokoro.voice import Floats, mix_styles, send
from cantata_models.kokoro.voices import KokoroInput, load_exported_styles

FRAME = 600
"""Samples for each frame of the durations, 25 ms."""
TOKENS = ("tokens", "input_ids")
SOUNDS = ("audio", "waveform")
"""Names of the first input and of the output, in the exports of several publishers."""
STYLE_INPUT, SPEED = "style", "speed"
"""Of the other inputs."""
DURATIONS = b"/Clip_output_0"
"""How the value inside the network is called that holds them: they are at least one frame."""
_TRIAL = (0, 50, 83, 54, 156, 57, 135, 0)
"""The ids of some phones, with the padding at both ends."""
_TYPES: Mapping[str, type[np.generic]] = {
    "tensor(float16)": np.float16,
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


class OnnxNetwork:
    """The network in ONNX Runtime, with the durations of phones if they can be had.

    Args:
        file: of the network.

    Raises:
        ConfigError: it is not a network of Kokoro's.
    """

    def __init__(self, file: Path) -> None:
        # Long sentences take much memory; it is given back.
        self._options = onnxruntime.RunOptions()
        self._options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        try:
            self._session = _open(file.read_bytes())
            self._types = {one.name: _TYPES[one.type] for one in self._session.get_inputs()}
            outputs = [one.name for one in self._session.get_outputs()]
            self._tokens, self._sound = _choose(TOKENS, self._types), _choose(SOUNDS, outputs)
            others = [name for name in outputs if name != self._sound]
            self._durations = self._find_durations(others)
        except Exception as error:  # ONNX Runtime's errors have no common type
            raise ConfigError(f"{file}: not a network of Kokoro's ({error})") from error

    def speak(
        self, phones: NDArray[np.int64], style: Floats, speed: float
    ) -> tuple[Floats, NDArray[np.float32] | None]:
        """The sound of a sentence, [N], and [T] frames of each phone, None without durations.

        Args:
            phones: [T] ids, with the padding at both ends.
            style: [2 * STYLE] of the voice.
            speed: of speaking; a network that takes whole numbers gets the nearest from 1.
        """
        wanted = [self._sound, *([self._durations] if self._durations else [])]
        sound, *rest = self._run(wanted, phones, style, speed)
        return sound, rest[0] if rest else None

    def _run(
        self, wanted: list[str], phones: NDArray[np.int64], style: Floats, speed: float
    ) -> list[Floats]:
        is_whole = issubclass(self._types[SPEED], np.integer)
        pace = np.array([max(round(speed), 1) if is_whole else speed])
        given: dict[str, NDArray[Any]] = {
            self._tokens: phones[None],
            STYLE_INPUT: style[None],
            SPEED: pace,
        }
        feed = {name: value.astype(self._types[name]) for name, value in given.items()}
        made = self._session.run(wanted, feed, self._options)
        return [value.ravel().astype(np.float32) for value in made]

    def _find_durations(self, others: list[str]) -> str | None:
        """The output that gives a number of frames for each phone, together the sound's length."""
        phones = np.array(_TRIAL, np.int64)
        style = np.zeros(2 * STYLE, np.float32)
        sound, *made = self._run([self._sound, *others], phones, style, 1.0)
        for name, value in zip(others, made, strict=True):
            if len(value) == len(phones) and value.sum() * FRAME == len(sound):
                return name
        return None


@dataclass(frozen=True, slots=True)
class OnnxVoice:
    """Implements `feed_forward.ConcurrentSynthesizer`: all voices of a folder."""

    network: OnnxNetwork
    styles: Mapping[str, torch.Tensor]
    """[R, 2 S] of each voice: row n is for n + 1 phones."""
    sample_rate: int = SAMPLE_RATE
    channels: int = 1
    is_concurrent: bool = True
    """A sentence takes one thread."""

    def synthesize(self, inputs: KokoroInput) -> Iterator[Pcm]:
        """A third of a second at a time; the times of all words come with the first part.

        Raises:
            RequestFailed: a voice that the stage has not, or too many phones.
        """
        style = mix_styles(self.styles, inputs, MAX_PHONES).numpy()
        sound, durations = self.network.speak(inputs.phones, style, inputs.speed)
        frame_s = FRAME / SAMPLE_RATE
        words = () if durations is None else time_words(inputs.words, durations, frame_s)
        yield from send([sound], words, inputs.begins)


def load_onnx_voice(checkpoint: Path, device: torch.device) -> OnnxVoice:
    """The stage of a folder of this form.

    Raises:
        ConfigError: the network or a style cannot be used, or the device is not the CPU.
    """
    if device.type != "cpu":
        raise ConfigError(f"Kokoro's ONNX form runs on the CPU; its deployment says {device}")
    styles = load_exported_styles(checkpoint)
    return OnnxVoice(OnnxNetwork(find_network(checkpoint)), styles)


def _open(model: bytes) -> Any:
    """A session on one thread that returns all values that may be the durations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    more = model
    for name in dict.fromkeys(find_values(model, DURATIONS)):
        more = add_output(more, name)
    try:
        return onnxruntime.InferenceSession(more, options, ["CPUExecutionProvider"])
    except Exception:  # as above; a name may be of a value that only a part of the graph has
        return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


def _choose(wanted: Sequence[str], names: Collection[str]) -> str:
    """The first of some names that there is."""
    found = [name for name in wanted if name in names]
    if not found:
        raise ValueError(f"it has no {' or '.join(wanted)}, but {', '.join(names)}")
    return found[0]
