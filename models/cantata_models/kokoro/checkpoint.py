"""Kokoro's networks together, and their weights from a published file.

Letters: T phones, F frames, G = 2 F values of pitch, N samples, S numbers of half a style.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_pickle
from cantata_layers.onnx_weights import ExportedGraph
from cantata_layers.weights import check_fit
from cantata_layers.whole_number_conv import WholeNumberConv, find_step
from cantata_layers.winograd_conv import WinogradConv
from cantata_models.kokoro.config import KokoroConfig
from cantata_models.kokoro.sound_network import SKIPPED, WIDTH, KokoroDecoder
from cantata_models.kokoro.text_network import (
    AdaptiveBlock,
    KokoroProsodyPredictor,
    KokoroTextEncoder,
    Moments,
    PeriodicBlock,
    PhoneBert,
)

PUBLISHED_FILES = ("kokoro-v1_0.pth", "kokoro-v1_1-zh.pth")
PARTS = ("bert", "bert_encoder", "predictor", "text_encoder", "decoder")
"""Of a file of weights."""
_WRAPPED = "module."
"""In front of each name, if the file was saved by a program that trains on several devices."""
_SCALES = {
    ".weight_g": ".weight_v",
    ".parametrizations.weight.original0": ".parametrizations.weight.original1",
}
"""How torch names a normed weight's length, in two generations, and its direction."""
_UNUSED = re.compile(r"bert\.(pooler\.|embeddings\.(position_ids|token_type_ids)$)")
_OPTIONAL = re.compile(r"\.(norm[12]|adain[12]\.\d+)\.norm\.(weight|bias)$")
"""Gains of 1 and offsets of 0 unless a file has them."""
_SHOWN = 4
MIN_KERNEL = 7
"""Of the generator's convolutions. To prepare a narrower one's inputs takes as long as it saves."""


@dataclass(frozen=True, slots=True)
class KokoroProsody:
    """How a sentence is to be spoken."""

    durations: torch.Tensor
    """[T] int64 frames of each phone."""
    pitch: torch.Tensor
    """[1, G] Hz."""
    energy: torch.Tensor
    """[1, G]"""
    text: torch.Tensor
    """[1, H, F] features of the phone that each frame is in."""


@dataclass(frozen=True, slots=True)
class Excitation:
    """What the generator makes a sentence's sound of, at whatever places it is asked."""

    frames: torch.Tensor
    """[1, C, G]"""
    source: torch.Tensor
    """[1, size + 2, K] spectra; K is G times their rate, and one more."""
    style: torch.Tensor
    """[1, S]"""


class Kokoro(nn.Module):
    """The whole model, for one sentence at a time.

    Args:
        config: of the checkpoint.
        width, skipped: channels of the decoder, see `sound_side.WIDTH`.
    """

    def __init__(self, config: KokoroConfig, width: int = WIDTH, skipped: int = SKIPPED) -> None:
        super().__init__()
        self.config = config
        self.bert = PhoneBert(config.bert, config.tokens)
        self.bert_encoder = nn.Linear(config.bert.hidden, config.hidden)
        self.predictor = KokoroProsodyPredictor(config)
        self.text_encoder = KokoroTextEncoder(config)
        self.decoder = KokoroDecoder(config, width, skipped)

    @torch.inference_mode()
    def predict(self, phones: torch.Tensor, style: torch.Tensor, speed: float) -> KokoroProsody:
        """Return how the sentence is to be spoken.

        Args:
            phones: [T] int64 ids, with the padding at both ends.
            style: [1, 2 S] of the voice.
            speed: of speaking; 1 is the voice's own.
        """
        manner = style[:, self.config.style :]
        row = phones[None]
        features, durations = self.predictor.time_phones(
            self.bert_encoder(self.bert(row)), manner, speed
        )
        pitch, energy = self.predictor.draw_curves(
            features.repeat_interleave(durations, dim=1), manner
        )
        text = self.text_encoder(row).repeat_interleave(durations, dim=2)
        return KokoroProsody(durations, pitch, energy, text)

    @torch.inference_mode()
    def excite(
        self, prosody: KokoroProsody, style: torch.Tensor, noise: torch.Tensor
    ) -> Excitation:
        """Return what the generator needs for the sentence.

        Args:
            prosody: of the sentence.
            style: [1, 2 S] of the voice.
            noise: [N, harmonics] of variance 1.
        """
        timbre = style[:, : self.config.style]
        frames = self.decoder(prosody.text, prosody.pitch, prosody.energy, timbre)
        source = self.decoder.generator.excite(prosody.pitch, noise)
        return Excitation(frames, source, timbre)

    @torch.inference_mode()
    def generate(
        self, made: Excitation, begin: int, end: int, moments: Moments | None = None
    ) -> torch.Tensor:
        """Return [N] samples of the values of pitch [begin, end), as if nothing were around them.

        Args:
            made: of the sentence.
            begin, end: at least two values.
            moments: of the parts before; None: it is normalized by itself.
        """
        rate = self.config.generator.spectra_per_pitch
        sound: torch.Tensor = self.decoder.generator(
            made.frames[:, :, begin:end],
            made.source[:, :, begin * rate : end * rate + 1],
            made.style,
            moments,
        )
        return sound[0]


def load_network(checkpoint: Path, config: KokoroConfig, device: torch.device) -> Kokoro:
    """Load the weights, in float32.

    Raises:
        ConfigError: there is no file of weights or more than one, it cannot be read, or weights are
            missing, unknown or of other shapes; names them.
    """
    path = find_weights(checkpoint)
    return _fill(_fold(dict(_read_parts(path)), path), config, path, device)


def load_export(path: Path, config: KokoroConfig, device: torch.device) -> Kokoro | None:
    """Load the weights of an ONNX file, in float32; those of 8 bits are the numbers that they stand
    for. None: the export does not name its weights after the networks.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        graph = ExportedGraph(path.read_bytes())
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}") from error
    with torch.device("meta"):
        names = [name for name, _ in Kokoro(config).named_parameters()]
    found = {name: torch.from_numpy(weight) for name, weight in graph.find(names).items()}
    if any(name not in found and not _OPTIONAL.search(name) for name in names):
        return None
    return _fill(found, config, path, device)


def _fill(
    tensors: dict[str, torch.Tensor], config: KokoroConfig, path: Path, device: torch.device
) -> Kokoro:
    """The networks with these weights.

    Raises:
        ConfigError: weights are missing, unknown or of other shapes; names them.
    """
    with torch.device("meta"):
        network = Kokoro(
            config,
            _count_rows(tensors, "decoder.encode.conv1.weight", WIDTH),
            _count_rows(tensors, "decoder.asr_res.0.weight", SKIPPED),
        )
    expected = {name: tuple(one.shape) for name, one in network.named_parameters()}
    for name, shape in expected.items():
        if name not in tensors and _OPTIONAL.search(name):
            tensors[name] = torch.full(shape, 1.0 if name.endswith("weight") else 0.0)
    check_fit(expected, tensors, path)
    on_device = {name: tensors[name].to(device) for name in expected}
    network.load_state_dict(on_device, assign=True)
    return network.eval().requires_grad_(False)


def halve_convolutions(network: Kokoro) -> None:
    """Let the convolutions of the decoder and its generator multiply in bfloat16, with sums in
    float32, which halves their time where a CPU has instructions for it."""
    for block in network.decoder.modules():
        if isinstance(block, PeriodicBlock):
            block.convs1.bfloat16()
            block.convs2.bfloat16()
        elif isinstance(block, AdaptiveBlock):
            block.conv1.bfloat16()
            block.conv2.bfloat16()


def split_convolutions(network: Kokoro) -> None:
    """Let the wide convolutions of the decoder and its generator multiply whole numbers where their
    weights are of 8 bits, which takes two thirds of their time where a CPU has instructions for it
    and none for bfloat16."""
    for block in network.decoder.modules():
        if isinstance(block, PeriodicBlock):
            for convs in (block.convs1, block.convs2):
                for index, conv in enumerate(convs):
                    convs[index] = _split(conv, MIN_KERNEL)
        elif isinstance(block, AdaptiveBlock):
            for name in ("conv1", "conv2"):
                setattr(block, name, _split(getattr(block, name)))


def use_winograd_convolutions(network: Kokoro) -> None:
    """Let the generator's wide convolutions in float32 multiply half as often, which takes half to
    four fifths of their time on a CPU with AVX2."""
    for block in network.decoder.modules():
        if isinstance(block, PeriodicBlock):
            for convs in (block.convs1, block.convs2):
                for index, conv in enumerate(convs):
                    if isinstance(conv, nn.Conv1d) and conv.kernel_size[0] >= MIN_KERNEL:
                        convs[index] = WinogradConv(conv)


def _split(conv: nn.Module, least_kernel: int = 1) -> nn.Module:
    if not isinstance(conv, nn.Conv1d) or conv.kernel_size[0] < least_kernel:
        return conv
    step = find_step(conv.weight)
    return conv if step is None else WholeNumberConv(conv, step)


def find_weights(checkpoint: Path) -> Path:
    """The file of weights in a folder: one that is named as published, or else the only one.

    Raises:
        ConfigError: there is none, or more than one.
    """
    found = sorted(checkpoint.glob("*.pth"))
    published = [path for path in found if path.name in PUBLISHED_FILES]
    chosen = published or found
    if len(chosen) != 1:
        names = ", ".join(path.name for path in chosen) or "no *.pth"
        raise ConfigError(
            f"{checkpoint}: has {names}; it needs one file of weights, such as {PUBLISHED_FILES[0]}"
        )
    return chosen[0]


def _read_parts(path: Path) -> Iterable[tuple[str, torch.Tensor]]:
    """Each weight by its name in `Kokoro`, still normed."""
    found: dict[str, Any] = dict(read_pickle(path))
    if set(found) != set(PARTS) or not all(isinstance(one, dict) for one in found.values()):
        shown = ", ".join(sorted(found)[:_SHOWN])
        raise ConfigError(
            f"{path}: must hold the parts {', '.join(PARTS)}, each by name; it holds {shown}"
        )
    for part, tensors in found.items():
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor):
                raise ConfigError(f"{path}: {part}.{name} is no tensor")
            whole = f"{part}.{name.removeprefix(_WRAPPED)}"
            if not _UNUSED.match(whole):
                yield whole, tensor.float()


def _fold(tensors: dict[str, torch.Tensor], path: Path) -> dict[str, torch.Tensor]:
    """Multiply each normed weight's direction by its length."""
    folded = dict(tensors)
    for name, length in tensors.items():
        ending = next((one for one in _SCALES if name.endswith(one)), None)
        if ending is None:
            continue
        base = name.removesuffix(ending)
        direction = folded.pop(base + _SCALES[ending], None)
        if direction is None or direction.shape[0] != length.numel():
            raise ConfigError(f"{path}: {base}{_SCALES[ending]} is missing or does not fit {name}")
        del folded[name]
        norms = direction.flatten(1).norm(dim=1)
        scale = (length.flatten() / norms).view(-1, *[1] * (direction.ndim - 1))
        folded[f"{base}.weight"] = direction * scale
    return folded


def _count_rows(tensors: Mapping[str, torch.Tensor], name: str, otherwise: int) -> int:
    return tensors[name].shape[0] if name in tensors else otherwise
