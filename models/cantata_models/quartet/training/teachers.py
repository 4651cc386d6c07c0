"""The teacher: Kokoro-82M in 8 bits, with four of its English voices.

It knows what others must measure: how long each phone lasts, where the pitch is, and the energy.
These values lie inside the network and become outputs of it. Without the sound, it takes a
thirtieth of the time.

Letters: T phones, F frames of 12.5 ms, N samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime

from cantata_layers.onnx_outputs import add_output, find_values
from cantata_models.quartet.training.packages import read_network, read_styles
from cantata_models.quartet.training.shards import AnnotatedSpeech

STOCK = ("af_heart", "am_michael", "bf_emma", "bm_george")
"""Whose speech the voices learn, in the order of `config.json`: two women and two men of two
accents."""
HELD_OUT_STYLES = ("af_kore", "bm_fable")
"""Real voices that judge clones alone, and are in no mixture."""
MIXTURES, HELD_OUT_MIXTURES = 160, 12
BRITISH_SHARE = 0.35
_INSIDE = (b"/Clip_output_0", b"/encoder/Reshape_output_0", b"/encoder/Reshape_1_output_0")
"""End the names of the values inside the network: durations, pitch and energy."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TeachingVoice:
    """One voice of the teacher."""

    name: str
    styles: Floats
    """[R, 256], as `packages.read_styles` has them."""

    @property
    def british(self) -> bool:
        """A name's first letter is its accent."""
        return self.name[0] == "b"


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """A text as the teacher gets it."""

    text: str
    phones: Sequence[int]
    """[T], with the padding at both ends."""
    speed: float


class SpeechTeacher(Protocol):
    """Reads sentences aloud."""

    def read(self, voice: TeachingVoice, line: ScriptLine) -> AnnotatedSpeech:
        """The sound with its annotations."""

    def plan(self, voice: TeachingVoice, line: ScriptLine) -> AnnotatedSpeech:
        """The annotations alone."""


@dataclass(frozen=True, slots=True)
class FollowedVoices:
    """Voices that the network knows by a recording."""

    trained: tuple[TeachingVoice, ...]
    held_out: tuple[TeachingVoice, ...]
    """For judging alone: of mixtures, and two real ones that are in no mixture."""


def list_followed_voices(packages: Path) -> FollowedVoices:
    """The teacher's other English voices, and mixtures of two or three of one accent.

    Raises:
        PackageMissing: the styles are not there.
    """
    styles = read_styles(packages)
    held = tuple(TeachingVoice(name, styles.pop(name)) for name in HELD_OUT_STYLES)
    real = tuple(TeachingVoice(name, styles[name]) for name in styles if name not in STOCK)
    mixtures = tuple(mix_styles(styles))
    return FollowedVoices(
        (*real, *mixtures[:-HELD_OUT_MIXTURES]), (*mixtures[-HELD_OUT_MIXTURES:], *held)
    )


def mix_styles(styles: Mapping[str, Floats], seed: int = 37) -> Iterator[TeachingVoice]:
    """`MIXTURES` voices, each of two or three others of its accent."""
    rng = np.random.default_rng(seed)
    for number in range(MIXTURES):
        accent = "ab"[int(rng.random() < BRITISH_SHARE)]
        known = [name for name in styles if name[0] == accent]
        chosen = rng.choice(known, 2 + int(rng.random() < 0.5), replace=False)
        shares = rng.dirichlet(np.ones(len(chosen)) * 1.5)
        mixed = sum(share * styles[name] for share, name in zip(shares, chosen, strict=True))
        yield TeachingVoice(f"{accent}-mixture-{number:03d}", np.asarray(mixed, np.float32))


def list_stock_voices(packages: Path) -> tuple[TeachingVoice, ...]:
    """Raises: PackageMissing: the styles are not there."""
    styles = read_styles(packages)
    return tuple(TeachingVoice(name, styles[name]) for name in STOCK)


class KokoroTeacher:
    """Kokoro-82M, one to four times as fast as it speaks. It has no chance in it.

    Args:
        packages: folder with the pinned packages.

    Raises:
        PackageMissing: they are not there.
    """

    def __init__(self, packages: Path) -> None:
        network = read_network(packages)
        names = [next(find_values(network, ending)) for ending in _INSIDE]
        self._session = _open_network(reduce(add_output, names, network))
        self._planner = _open_network(cut_network(network, [name.decode() for name in names]))

    def read(self, voice: TeachingVoice, line: ScriptLine) -> AnnotatedSpeech:
        """The sound with its annotations."""
        return annotate(voice, line, *_compute(self._session, voice, line))

    def plan(self, voice: TeachingVoice, line: ScriptLine) -> AnnotatedSpeech:
        """The annotations without the sound, for a thirtieth of the time."""
        return annotate(voice, line, np.zeros(0, np.float32), *_compute(self._planner, voice, line))


def _compute(
    session: onnxruntime.InferenceSession, voice: TeachingVoice, line: ScriptLine
) -> list[Floats]:
    row = voice.styles[min(len(line.phones) - 2, len(voice.styles)) - 1]
    feed = {
        "tokens": np.array([line.phones], np.int64),
        "style": row[None],
        "speed": np.array([line.speed], np.float32),
    }
    known = {value.name for value in session.get_inputs()}
    fed = {name: values for name, values in feed.items() if name in known}
    return [value.ravel() for value in session.run(None, fed)]


def annotate(
    voice: TeachingVoice,
    line: ScriptLine,
    sound: Floats,
    durations: Floats,
    pitch: Floats,
    energy: Floats,
) -> AnnotatedSpeech:
    """Brings a teacher's outputs into one form.

    Args:
        voice: who spoke.
        line: what was read.
        sound: [N], or [0] if it was not made.
        durations: [T] frames of 25 ms.
        pitch: [F] Hz.
        energy: [F].

    Raises:
        ValueError: the lengths do not agree.
    """
    return AnnotatedSpeech(
        voice=voice.name,
        text=line.text,
        speed=line.speed,
        phones=np.asarray(line.phones, np.int16),
        durations=np.round(durations).astype(np.int16),
        pitch=pitch.astype(np.float32),
        energy=energy.astype(np.float32),
        samples=np.round(np.clip(sound, -1, 1) * 32767).astype(np.int16),
    )


def cut_network(network: bytes, outputs: Sequence[str]) -> bytes:
    """An ONNX model's part that makes some values of it, which become its only outputs."""
    import onnx  # with the judges alone; the rest of this file does without

    model = onnx.load_from_string(network)
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    wanted, needed = list(outputs), set[str]()
    while wanted:
        name = wanted.pop()
        if name not in needed:
            needed.add(name)
            wanted += makers[name].input if name in makers else []
    nodes = [node for node in graph.node if needed.intersection(node.output)]
    values = [value for value in graph.initializer if value.name in needed]
    for field, kept in (
        (graph.node, nodes),
        (graph.initializer, values),
        (graph.input, [value for value in graph.input if value.name in needed]),
        (graph.output, [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]),
    ):
        del field[:]
        field.extend(kept)
    cut: bytes = model.SerializeToString()
    return cut


def _open_network(model: bytes) -> onnxruntime.InferenceSession:
    """A session on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Threads that wait in a loop cost more than the network.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
