"""The voices' stage: a sentence is planned as a whole, then its sound is made part by part.

Letters: T phones, F frames of 12.5 ms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn import functional

from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import ConfigError, RequestFailed
from cantata_layers.harmonic_vocoder import SAMPLE_RATE, Floats, stream_noise, synthesize
from cantata_layers.misaki.speech import SentenceInput, add_word_times
from cantata_models.quartet.config import load_config
from cantata_models.quartet.network import FRAMES_PER_COUNT, QuartetNetwork, QuartetSpeaker
from cantata_models.quartet.spectrum_stream import SpectrumInput, SpectrumStream

WEIGHTS_FILE = "quartet.safetensors"
"""In float16."""


def load_network(checkpoint: Path) -> QuartetNetwork:
    """The network in float32, for inference. Raises ConfigError: a file is missing, or its weights
    have other names or sizes."""
    path = checkpoint / WEIGHTS_FILE
    network = QuartetNetwork(len(load_config(checkpoint).voices))
    try:
        tensors: dict[str, torch.Tensor] = load_file(path)
        network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ConfigError(f"{path}: not the weights of these voices ({error})") from error
    return network.eval().requires_grad_(False)


COUNT_S = 0.025
"""By which durations are counted."""
AUDIBLE_ENERGY = -2.0
"""In the network's measure, which is about -9.4 in silence and 6 in vowels."""
ENERGY_DB = 2.5
"""Decibels of a unit of energy, of the mean of the four voices: 1.8 to 3."""
GLIDE_FRAMES = 7
"""Over which pitch and energy pass into those of a word that stands out."""
TAIL_FRAMES = 24
"""Kept after the last audible frame: 0.3 s. The teacher's sentences end and begin with 0.3 to 0.5 s
of silence, which together is longer than a breath, and long enough to lose one's turn."""
BLOCKS = (40, 80, 160)
"""Frames of a sentence's parts after the first. Later ones are longer: each takes a fixed time,
too, and by then the listener has more to play."""
FIRST_S = 0.3
"""Of the first word and what follows in a sentence's first part."""


@dataclass(frozen=True, slots=True)
class PlannedSentence:
    """A sentence with durations and a melody."""

    network: QuartetNetwork
    inputs: SpectrumInput
    durations: Floats
    """[T] frames of `COUNT_S`."""
    tail: int
    """Silent frames that are kept at the end."""

    @property
    def audible(self) -> NDArray[np.bool_]:
        """[F] where there is sound."""
        audible: NDArray[np.bool_] = self.inputs.energy[0].numpy() > AUDIBLE_ENERGY
        return audible

    @property
    def pitch(self) -> Floats:
        """[F] Hz, without most of the silence at the end."""
        heard = np.flatnonzero(self.audible)
        end = heard[-1] + 1 + self.tail if len(heard) else None
        pitch: Floats = self.inputs.pitch[0].numpy()[:end]
        return pitch

    def predict_spectra(self) -> SpectrumStream:
        """One pass through it, from its beginning."""
        return SpectrumStream(self.network.spectrum, self.inputs, self.pitch)


@torch.inference_mode()
def plan_sentence(
    network: QuartetNetwork,
    phones: NDArray[np.int64],
    speaker: QuartetSpeaker,
    speed: float,
    inflections: Floats | None = None,
) -> PlannedSentence:
    """Decides how long each phone lasts, and the melody.

    Args:
        phones: [T].
        speaker: of `network`.
        speed: divides the durations.
        inflections: as `SentenceInput` has them. None: nothing stands out.
    """
    row = torch.from_numpy(phones)[None]
    encoded, logs = network.prosody.predict_durations(row, speaker.prosody)
    stands_out = inflections is not None and len(inflections) > 0
    pace = speed * torch.from_numpy(inflections)[:, 2] if stands_out else speed
    durations = _round_durations((torch.exp(logs[0]) - 1) / pace, carries=speed != 1.0)
    counts = durations.long()
    spread = encoded.repeat_interleave(counts, 1)
    pitch, energy = network.prosody.predict_contour(spread, speaker.prosody)
    if stands_out:
        frames = torch.from_numpy(inflections).repeat_interleave(counts * FRAMES_PER_COUNT, 0)
        pitch, energy = _inflect(pitch, energy, frames)
    spoken = network.spectrum.encode(row, speaker.spectrum)
    frames = spoken.repeat_interleave(counts * FRAMES_PER_COUNT, 1)
    tail = round(TAIL_FRAMES / speed)
    inputs = SpectrumInput(frames, pitch, energy, speaker.spectrum)
    return PlannedSentence(network, inputs, durations.numpy(), tail)


def _round_durations(counts: torch.Tensor, carries: bool) -> torch.Tensor:
    """[T] -> [T] whole frames, at least one for each phone.

    Args:
        counts: as predicted.
        carries: what rounding adds to a phone is taken from the next ones: fast speech has many
            phones of less than a frame, and would be slower than asked.
    """
    if not carries:
        return torch.round(counts).clamp(min=1)
    rounded, owed = list[int](), 0.0
    for count in counts.tolist():
        rounded.append(max(round(count + owed), 1))
        owed += count - rounded[-1]
    return torch.tensor(rounded, dtype=counts.dtype)


def _inflect(
    pitch: torch.Tensor, energy: torch.Tensor, frames: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """[1, F] Hz, [1, F] energy and [F, 3] inflections -> pitch and energy with these.

    The voice's own contours are kept; silence stays as quiet as it is.
    """
    changes = torch.stack([torch.log(frames[:, 0]), frames[:, 1] / ENERGY_DB])[None]
    reach = GLIDE_FRAMES // 2
    padded = functional.pad(changes, (reach, reach), mode="replicate")
    log_factor, more = functional.avg_pool1d(padded, GLIDE_FRAMES, 1)[0]
    return pitch * torch.exp(log_factor), energy + more * (energy > AUDIBLE_ENERGY)


@dataclass(frozen=True, slots=True)
class QuartetVoices:
    """Implements `contract.model.feed_forward.ConcurrentSynthesizer`."""

    network: QuartetNetwork
    speakers: Mapping[str, int]
    """By the voice's id."""
    sample_rate: int = SAMPLE_RATE
    channels: int = 1
    is_concurrent: bool = True
    """A part takes one core."""

    def synthesize(self, inputs: SentenceInput) -> Iterator[Pcm]:
        """A sentence part by part; the times of all words come with the first part."""
        speaker = self.network.find_speaker(self._find_voice(inputs))
        sentence = plan_sentence(
            self.network, inputs.phones, speaker, inputs.speed, inputs.inflections
        )
        silent = sentence.durations[: inputs.words[0, 0]].sum() * COUNT_S
        first = math.ceil((silent + FIRST_S) / COUNT_S) * FRAMES_PER_COUNT
        noise = stream_noise(inputs.seed)
        parts = synthesize(sentence.predict_spectra(), noise, (first, *BLOCKS))
        # Of the silence before it, too: the end of the sentence before is pause enough.
        trimmed = replace(inputs, begins=True)
        counts, frame_s = sentence.durations, COUNT_S / FRAMES_PER_COUNT
        heard = sentence.audible
        return add_word_times(trimmed, parts, counts, COUNT_S, SAMPLE_RATE, heard, frame_s)

    def _find_voice(self, inputs: SentenceInput) -> int | Floats:
        if not isinstance(inputs.voice, str):
            return inputs.voice
        if inputs.voice not in self.speakers:
            raise RequestFailed(f"the stage has no voice {inputs.voice!r}")
        return self.speakers[inputs.voice]


def load_voices(checkpoint: Path, device: torch.device) -> QuartetVoices:
    """The stage's factory. Raises ConfigError: the folder has no such voices, or the device is not
    the CPU."""
    if device.type != "cpu":
        raise ConfigError(f"quartet runs on the CPU; its deployment says {device}")
    voices = load_config(checkpoint).voices
    speakers = {voice.id: place for place, voice in enumerate(voices)}
    return QuartetVoices(load_network(checkpoint), speakers)
