"""The checkpoint folder: config.json, talker.safetensors, codec.safetensors.

Weights are float16 on disk and float32 in memory. float16 is more precise than bfloat16 at the same
size, and no weight comes near the limit of its range.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from cantata_models.solo.config import SoloConfig, load_config, save_config
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.codec_encoder import CodecEncoder, ResidualQuantizer
from cantata_models.solo.networks.talker import SoloTalkerNetwork

WEIGHTS_FOLDER = Path(__file__).with_name("weights")
TALKER_FILE = "talker.safetensors"
CODEC_FILE = "codec.safetensors"
DECODER_PREFIX = "decoder."
ENCODER_PREFIX = "encoder."

Tensors = dict[str, torch.Tensor]


def read_tensors(path: Path, prefix: str = "") -> Tensors:
    """Returns the float32 tensors whose names start with `prefix`, under names without it.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: no tensor has this prefix.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `make train-voice` makes it")
    tensors = {
        name.removeprefix(prefix): tensor.float()
        for name, tensor in load_file(path).items()
        if name.startswith(prefix)
    }
    if not tensors:
        raise ValueError(f"{path} has no tensor whose name starts with {prefix!r}")
    return tensors


def _fill(module: nn.Module, tensors: Tensors) -> None:
    module.load_state_dict(tensors)
    module.eval().requires_grad_(False)


def load_talker(folder: Path = WEIGHTS_FOLDER) -> SoloTalkerNetwork:
    """Returns the whole talker, ready for inference."""
    talker = SoloTalkerNetwork(load_config(folder))
    _fill(talker, read_tensors(folder / TALKER_FILE))
    return talker


def load_codec_decoder(folder: Path = WEIGHTS_FOLDER) -> CodecDecoder:
    decoder = CodecDecoder(load_config(folder).codec)
    _fill(decoder, read_tensors(folder / CODEC_FILE, DECODER_PREFIX))
    return decoder


def load_codec_encoder(folder: Path = WEIGHTS_FOLDER) -> tuple[CodecEncoder, ResidualQuantizer]:
    """Returns the encoder and the quantizer, which together turn audio into codes."""
    config = load_config(folder).codec
    encoder = CodecEncoder(config)
    _fill(encoder, read_tensors(folder / CODEC_FILE, ENCODER_PREFIX))
    quantizer = ResidualQuantizer(config.codebooks, config.codebook_size, config.latent_size)
    books = read_tensors(folder / CODEC_FILE, DECODER_PREFIX)["codebooks"]
    _fill(quantizer, {"codebooks": books})
    return encoder, quantizer


def _half(tensors: Tensors) -> Tensors:
    return {name: tensor.detach().half().contiguous() for name, tensor in tensors.items()}


def save_checkpoint(
    folder: Path,
    config: SoloConfig,
    talker: SoloTalkerNetwork,
    decoder: CodecDecoder,
    encoder: CodecEncoder,
) -> int:
    """Writes the three files and returns the size of the two weight files in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    save_config(config, folder)
    codec = {DECODER_PREFIX + name: t for name, t in decoder.state_dict().items()}
    codec |= {ENCODER_PREFIX + name: t for name, t in encoder.state_dict().items()}
    # One key only: safetensors writes several in any order, so equal weights could differ on disk.
    metadata = {"format": "pt"}
    parts = {TALKER_FILE: talker.state_dict(), CODEC_FILE: codec}
    for name, tensors in parts.items():
        # Write to a temporary file and rename it: a loading server sees the old or the new file.
        part = folder / (name + ".part")
        save_file(_half(tensors), part, metadata=metadata)
        part.chmod(0o644)
        part.replace(folder / name)
    return sum((folder / name).stat().st_size for name in parts)


def load_decoder(checkpoint: Path, device: torch.device) -> CodecDecoder:
    """Returns the checkpoint's streaming decoder in fp32."""
    return load_codec_decoder(checkpoint).to(device).eval()
