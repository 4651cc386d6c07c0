"""Stage codec: A trains encoder, quantizer and decoder; B trains the decoder on frozen codes."""

from __future__ import annotations

import logging
from pathlib import Path

import torch
from torch import nn

from cantata_layers.training.loop import HALF_COSINE, TrainedPart, TrainingLoop, make_adamw
from cantata_layers.training.mixed_precision import autocast_bfloat16
from cantata_models.solo.checkpoint import (
    CODEC_FILE,
    DECODER_PREFIX,
    ENCODER_PREFIX,
    read_tensors,
)
from cantata_models.solo.config import CodecConfig
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.codec_encoder import CodecEncoder, ResidualQuantizer
from cantata_models.solo.training.crops import (
    HEARD_FRAMES,
    ClipBank,
    CropMaker,
    Crops,
    compare_crops,
    decode_crops,
)
from cantata_models.solo.training.losses import SoundLoss
from cantata_models.solo.training.quantizer import QuantizerTrainer

logger = logging.getLogger(__name__)

UNQUANTIZED_STEPS = 250
KMEANS_BATCHES = 40
COMMITMENT = 0.25
RATE_A = 1.2e-3
RATE_A_AGAIN = 7e-4
"""Learning rate when training continues from exported weights."""
RATE_B = 9e-4


class TrainableCodec(nn.Module):
    """Encoder, quantizer and decoder together, for training."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.encoder = CodecEncoder(config)
        self.quantizer = ResidualQuantizer(
            config.codebooks, config.codebook_size, config.latent_size
        )
        self.decoder = CodecDecoder(config)

    def start_from(self, checkpoint: Path) -> None:
        """Loads exported weights; codebooks missing from them stay empty."""
        encoder = read_tensors(checkpoint / CODEC_FILE, ENCODER_PREFIX)
        decoder = read_tensors(checkpoint / CODEC_FILE, DECODER_PREFIX)
        books = decoder.pop("codebooks")
        self.encoder.load_state_dict(encoder)
        self.decoder.load_state_dict({**decoder, "codebooks": self.decoder.codebooks})
        self.quantizer.codebooks[: len(books)] = books

    def tie_codebooks(self) -> None:
        """Copies the quantizer's codebooks into the decoder."""
        self.decoder.codebooks.copy_(self.quantizer.codebooks)


def train_a(
    bank: ClipBank,
    config: CodecConfig,
    distance: SoundLoss,
    folder: Path,
    minutes: float,
    device: str,
    start: Path | None = None,
) -> TrainableCodec:
    """Trains the whole codec, from exported weights if given, and ties its codebooks."""
    torch.manual_seed(1)
    codec = TrainableCodec(config).to(device)
    if start is not None:
        codec.start_from(start)
    unquantized_steps = UNQUANTIZED_STEPS if start is None else 0
    distance = distance.to(device)
    books = QuantizerTrainer(codec.quantizer)
    rate = RATE_A if start is None else RATE_A_AGAIN
    parts: dict[str, TrainedPart] = {"codec": codec, "books": books}
    optimizer = make_adamw(codec.parameters(), rate)
    loop = TrainingLoop(folder / "codec_a.pt", parts, [optimizer], minutes, HALF_COSINE)
    maker = CropMaker(bank, seed=loop.progress.step)

    def draw() -> tuple[Crops, torch.Tensor]:
        crops = maker.draw()
        return crops, bank.at(crops.starts, HEARD_FRAMES).to(device)

    def encode(samples: torch.Tensor) -> torch.Tensor:
        with autocast_bfloat16(device):
            latents: torch.Tensor = codec.encoder(samples)
        return latents.float()

    def start_codebooks() -> None:
        with torch.no_grad():
            batches = [encode(draw()[1]).flatten(0, 1) for _ in range(KMEANS_BATCHES)]
        books.start(torch.cat(batches))

    def step(number: int) -> tuple[torch.Tensor, dict[str, float]]:
        if number == unquantized_steps:
            start_codebooks()
        crops, samples = draw()
        latents = encode(samples)
        commitment = torch.zeros((), device=device)
        if number >= unquantized_steps:
            latents, commitment = books.quantize(latents)
        with autocast_bfloat16(device):
            output = decode_crops(codec.decoder, crops, latents)
        loss, figures = compare_crops(distance, codec.decoder, crops, output, samples)
        return loss + COMMITMENT * commitment, {**figures, "commitment": commitment.item()}

    loop.run(step)
    codec.tie_codebooks()
    return codec


def train_b(
    codec: TrainableCodec,
    bank: ClipBank,
    distance: SoundLoss,
    folder: Path,
    minutes: float,
    device: str,
) -> TrainableCodec:
    """Trains only the decoder, on the frozen codes of codec A."""
    torch.manual_seed(2)
    codec = codec.to(device)
    distance = distance.to(device)
    parts = {"decoder": codec.decoder}
    optimizer = make_adamw(codec.decoder.parameters(), RATE_B)
    loop = TrainingLoop(folder / "codec_b.pt", parts, [optimizer], minutes, HALF_COSINE)
    maker = CropMaker(bank, seed=loop.progress.step + 1)

    def step(number: int) -> tuple[torch.Tensor, dict[str, float]]:
        crops = maker.draw()
        samples = bank.at(crops.starts, HEARD_FRAMES).to(device)
        with torch.no_grad(), autocast_bfloat16(device):
            latents = codec.encoder(samples).float()
        with torch.no_grad():
            latents = codec.quantizer.decode(codec.quantizer.encode(latents))
        with autocast_bfloat16(device):
            output = decode_crops(codec.decoder, crops, latents)
        return compare_crops(distance, codec.decoder, crops, output, samples)

    loop.run(step)
    return codec
