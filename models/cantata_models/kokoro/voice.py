"""The voice's stage: a sentence's prosody at once, then its sound from pause to pause.

The generator normalizes over time, so it makes exactly the published sound only of a whole
sentence. A sentence with pauses is made in parts, so that its beginning is heard early; each part
is normalized with the parts before it. docs/models/kokoro.md says how near that is.

Letters: T phones, G values of pitch, N samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Pcm, WordTiming
from cantata.contract.data.errors import RequestFailed
from cantata_layers.misaki.timing import LEAD_S, find_onset, place_words, time_words
from cantata_models.kokoro.checkpoint import (
    Excitation,
    Kokoro,
    halve_convolutions,
    load_export,
    load_network,
    split_convolutions,
    use_winograd_convolutions,
)
from cantata_models.kokoro.config import (
    PITCHES_PER_FRAME,
    SAMPLE_RATE,
    find_network,
    has_onnx,
    load_alphabet,
    load_config,
    publish_sizes,
)
from cantata_models.kokoro.sound_network import draw_noise
from cantata_models.kokoro.text_network import Moments
from cantata_models.kokoro.voices import KokoroInput, list_voices, load_exported_styles, load_styles

if TYPE_CHECKING:
    from cantata_models.kokoro.onnx_voice import OnnxVoice

Floats = NDArray[np.float32]
PAUSES = ";:,.!?—…"
"""Marks at which a voice may pause."""
SILENT = ' "()“”'
"""What may stand beside them."""
MIN_PAUSE = 8
"""Values of pitch, 12.5 ms each as published: a shorter pause is not silent."""
MIN_PART = 80
"""Of one part; a shorter one is normalized too differently."""
CONTEXT = 8
"""Made on both sides of a part, as far as the generator's convolutions see."""
FADE = 2
"""From one part to the next."""
CHUNK_S = 0.3
"""Seconds of sound that leave at once."""


@dataclass(frozen=True, slots=True)
class KokoroVoice:
    """Implements `feed_forward.ConcurrentSynthesizer`: all voices of a checkpoint."""

    network: Kokoro
    styles: Mapping[str, torch.Tensor]
    """[R, 2 S] of each voice: row n is for n + 1 phones."""
    device: torch.device
    sample_rate: int = SAMPLE_RATE
    channels: int = 1

    @property
    def is_concurrent(self) -> bool:
        """On a CPU: the blocks of one part leave a fifth of two cores idle."""
        return self.device.type == "cpu"

    def synthesize(self, inputs: KokoroInput) -> Iterator[Pcm]:
        """A third of a second at a time; the times of all words come with the first part.

        Raises:
            RequestFailed: a voice that the stage has not, or too many phones.
        """
        config = self.network.config
        style = self.mix_style(inputs).to(self.device)
        phones = torch.from_numpy(inputs.phones).to(self.device)
        prosody = self.network.predict(phones, style, inputs.speed)
        pitches = prosody.pitch.shape[1]
        noise = draw_noise(inputs.seed, pitches * config.generator.samples_per_pitch)
        excitation = self.network.excite(prosody, style, noise.to(self.device))
        durations = prosody.durations.cpu().numpy()
        pauses = find_pauses(inputs.phones, durations, config.vocabulary)
        cuts = plan_cuts(pauses, prosody.energy[0].cpu().numpy())
        words = time_words(inputs.words, durations, config.samples_per_frame / SAMPLE_RATE)
        yield from send(speak_parts(self.network, excitation, cuts), words, inputs.begins)

    def mix_style(self, inputs: KokoroInput) -> torch.Tensor:
        """[1, 2 S]: the mean of the voices' styles for a sentence of this length, by weight.

        Raises:
            RequestFailed: as `synthesize`.
        """
        return mix_styles(self.styles, inputs, self.network.config.max_phones)[None]


def mix_styles(
    styles: Mapping[str, torch.Tensor], inputs: KokoroInput, max_phones: int
) -> torch.Tensor:
    """[2 S]: the mean of the voices' styles for a sentence of this length, by weight.

    Args:
        styles: [R, 2 S] of each voice: row n is for n + 1 phones.
        inputs: the sentence and its voices.
        max_phones: most phones of a sentence, without the padding.

    Raises:
        RequestFailed: a voice that the stage has not, or too many phones.
    """
    missing = [name for name in inputs.voices if name not in styles]
    if missing:
        raise RequestFailed(f"the stage has no voice {missing[0]!r}")
    count = len(inputs.phones) - 2
    if not 1 <= count <= max_phones:
        raise RequestFailed(f"a sentence of {count} phones; it may have 1 to {max_phones}")
    rows = [styles[name][count - 1] for name in inputs.voices]
    weighted = [weight * row for weight, row in zip(inputs.weights, rows, strict=True)]
    return sum(weighted[1:], weighted[0])


def send(parts: Iterable[Floats], words: Sequence[WordTiming], begins: bool) -> Iterator[Pcm]:
    """A sentence's sound as it leaves, `CHUNK_S` at a time; the times come with the first of it.

    Args:
        parts: [N] samples of each, the first at least up to where the sound begins.
        words: in the time of the durations.
        begins: it is the first of its text: the silence before it is left out.
    """
    size = round(CHUNK_S * SAMPLE_RATE)
    timings = tuple(words)
    for index, sound in enumerate(parts):
        lead = 0
        if index == 0:
            onset = find_onset(sound)
            lead = max(onset - round(LEAD_S * SAMPLE_RATE), 0) if begins else 0
            timings = place_words(words, onset / SAMPLE_RATE, lead / SAMPLE_RATE)
        for begin in range(lead, len(sound), size):
            yield Pcm(np.clip(sound[begin : begin + size], -1.0, 1.0)[:, None], timings)
            timings = ()  # sent once


def speak_parts(network: Kokoro, excitation: Excitation, cuts: Sequence[int]) -> Iterator[Floats]:
    """The sound of a sentence, part by part: together G * samples_per_pitch samples.

    Args:
        network: makes it.
        excitation: of the sentence.
        cuts: between the parts, values of pitch.

    Yields:
        [N] samples, each part as soon as it is made.
    """
    step = network.config.generator.samples_per_pitch
    length = excitation.frames.shape[2]
    # Alone, a part is the whole sentence, and exactly the published sound.
    moments = Moments() if cuts else None
    ramp = (np.arange(FADE * step, dtype=np.float32) + 0.5) / (FADE * step)
    tail: Floats | None = None
    for begin, end in pairwise([0, *cuts, length]):
        first, last = max(begin - CONTEXT, 0), min(end + CONTEXT, length)
        made: Floats = network.generate(excitation, first, last, moments).cpu().numpy()
        sound = made[(begin - first) * step : (end - first) * step].copy()
        if tail is not None:
            sound[: len(ramp)] = sound[: len(ramp)] * ramp + tail * (1 - ramp)
        tail = made[(end - first) * step :][: len(ramp)]
        yield sound


def find_pauses(
    phones: NDArray[np.int64], durations: NDArray[np.int64], vocabulary: Mapping[str, int]
) -> list[tuple[int, int]]:
    """Where the voice may be silent inside a sentence, values of pitch [begin, end) each.

    Args:
        phones: [T] ids.
        durations: [T] frames of each.
        vocabulary: letter -> id.
    """
    marks = {vocabulary[letter] for letter in PAUSES if letter in vocabulary}
    beside = {vocabulary[letter] for letter in SILENT if letter in vocabulary}
    ends = np.concatenate([[0], np.cumsum(durations)]) * PITCHES_PER_FRAME
    pauses = list[tuple[int, int]]()
    begun, has_mark = None, False
    for index, phone in enumerate(phones.tolist()):
        if phone in marks or phone in beside:
            begun = index if begun is None else begun
            has_mark |= phone in marks
            continue
        if begun is not None and has_mark and index < len(phones) - 1:
            pauses.append((int(ends[begun]), int(ends[index])))
        begun, has_mark = None, False
    return pauses


def plan_cuts(pauses: Sequence[tuple[int, int]], energy: Floats) -> list[int]:
    """Where a sentence is cut into parts, values of pitch: at the quietest place of each pause that
    is long enough and not too near to the cut before or to the end.

    Args:
        pauses: of the sentence, in order.
        energy: [G]
    """
    cuts = list[int]()
    for begin, end in pauses:
        if end - begin < MIN_PAUSE:
            continue
        quietest = begin + int(energy[begin:end].argmin())
        before = cuts[-1] if cuts else 0
        if min(quietest - before, len(energy) - quietest) >= MIN_PART:
            cuts.append(quietest)
    return cuts


def load_voice(checkpoint: Path, device: torch.device) -> KokoroVoice | OnnxVoice:
    """The stage's factory.

    Raises:
        ConfigError: the configuration, the weights or a voice cannot be used.
    """
    if not has_onnx(checkpoint):
        config = load_config(checkpoint)
        styles = load_styles(list_voices(checkpoint), config.max_phones, config.style)
        return _make_voice(load_network(checkpoint, config, device), styles, device)
    config = publish_sizes(load_alphabet(checkpoint).vocabulary)
    network = load_export(find_network(checkpoint), config, device)
    if network is not None:
        return _make_voice(network, load_exported_styles(checkpoint), device)
    from cantata_models.kokoro.onnx_voice import load_onnx_voice

    return load_onnx_voice(checkpoint, device)


def _make_voice(
    network: Kokoro, styles: Mapping[str, torch.Tensor], device: torch.device
) -> KokoroVoice:
    if device.type == "cpu":
        if torch.cpu._is_avx512_bf16_supported():
            halve_convolutions(network)
        else:
            if torch.cpu._is_vnni_supported():
                split_convolutions(network)
            use_winograd_convolutions(network)
    return KokoroVoice(network, styles, device)
