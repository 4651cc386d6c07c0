"""The codec with the source filter as one network, and its weights on disk.

Letters: B rows, T frames of 80 ms, Z latent size, N samples.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from cantata_models.solo.networks.filter_decoder import (
    FilterCodecConfig,
    FilterDecoder,
    PitchedEncoder,
)
from cantata_models.solo.training.natural.bank import PitchedSound

WEIGHTS_FILE = Path(__file__).with_name("filter_codec.safetensors")
"""In float16; a training can go on from there."""


@dataclass(slots=True)
class CodecProgress:
    """How far a training has come; part of its checkpoint."""

    step: int = 0
    cpu_seconds: float = 0.0
    audio_seconds: float = 0.0
    """Of crops compared."""
    begun: int = 0
    """The step at which the optimiser last began without a memory."""


class FilterCodec(nn.Module):
    """Encoder and decoder together, for training and for copies of recordings."""

    def __init__(self, config: FilterCodecConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = PitchedEncoder(config)
        self.decoder = FilterDecoder(config)

    def encode(self, sound: PitchedSound) -> torch.Tensor:
        """[B, T, Z] latents."""
        latents: torch.Tensor = self.encoder(sound.samples, sound.log2_hz, sound.voicing)
        return latents

    @torch.inference_mode()
    def copy(self, sound: PitchedSound) -> torch.Tensor:
        """[B, N] -> [B, N - lag]: what the decoder makes of it, in time with it."""
        return self.decoder.decode_all(self.encode(sound))[:, self.decoder.lag :]


def export_codec(codec: FilterCodec, progress: CodecProgress, path: Path) -> int:
    """Writes the weights and how far they are trained; returns the size in bytes."""
    halves = {name: t.detach().half().contiguous() for name, t in codec.state_dict().items()}
    part = path.with_suffix(".part")
    # One key only: several would be written in any order.
    save_file(halves, part, metadata={"progress": json.dumps(asdict(progress))})
    part.chmod(0o644)
    part.replace(path)
    return path.stat().st_size


def import_codec(codec: FilterCodec, path: Path) -> CodecProgress:
    """Loads the weights, and says how far they are trained.

    Raises:
        FileNotFoundError: there is no such file.
        RuntimeError: the weights are of another size.
    """
    tensors: dict[str, torch.Tensor] = load_file(path)
    codec.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    with safe_open(path, "pt") as file:
        return CodecProgress(**json.loads(file.metadata()["progress"]))
