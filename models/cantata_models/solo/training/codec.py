"""Stage codec: A trains encoder, quantiser and decoder; B trains the decoder on frozen codes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cantata_layers.mixed_precision import autocast_bfloat16
from cantata_models.solo.checkpoint import (
    CODEC_FILE,
    DECODER_PREFIX,
    ENCODER_PREFIX,
    read_tensors,
)
from cantata_models.solo.config import CodecConfig
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.codec_encoder import CodecEncoder, ResidualQuantiser
from cantata_models.solo.training.clips import ClipBank
from cantata_models.solo.training.crops import (
    HEARD_FRAMES,
    CropMaker,
    Crops,
    compare_crops,
    decode_crops,
)
from cantata_models.solo.training.loop import TrainingLoop
from cantata_models.solo.training.losses import SoundLoss
from cantata_models.solo.training.quantiser import QuantiserTrainer

logger = logging.getLogger(__name__)

UNQUANTISED_STEPS = 250
KMEANS_BATCHES = 40
COMMITMENT = 0.25
RATE_A = 1.2e-3
RATE_A_AGAIN = 7e-4
"""Learning rate when training continues from exported weights."""
RATE_B = 9e-4


class Codec(nn.Module):
    """Encoder, quantiser and decoder together, for training."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.encoder = CodecEncoder(config)
        self.quantiser = ResidualQuantiser(
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
        self.quantiser.codebooks[: len(books)] = books

    def tie_codebooks(self) -> None:
        """Copies the quantiser's codebooks into the decoder."""
        self.decoder.codebooks.copy_(self.quantiser.codebooks)


def train_a(
    bank: ClipBank,
    config: CodecConfig,
    distance: SoundLoss,
    folder: Path,
    minutes: float,
    device: str,
    start: Path | None = None,
) -> Codec:
    """Trains the whole codec, from exported weights if given, and ties its codebooks."""
    torch.manual_seed(1)
    codec = Codec(config).to(device)
    if start is not None:
        codec.start_from(start)
    unquantised_steps = UNQUANTISED_STEPS if start is None else 0
    distance = distance.to(device)
    books = QuantiserTrainer(codec.quantiser)
    rate = RATE_A if start is None else RATE_A_AGAIN
    loop = TrainingLoop("codec_a", folder, minutes, rate, list(codec.parameters()))
    saved = loop.resume()
    if saved is not None:
        codec.load_state_dict(saved["codec"])
        books.load(saved["books"])
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
        if number == unquantised_steps:
            start_codebooks()
        crops, samples = draw()
        latents = encode(samples)
        commitment = torch.zeros((), device=device)
        if number >= unquantised_steps:
            latents, commitment = books.quantise(latents)
        with autocast_bfloat16(device):
            output = decode_crops(codec.decoder, crops, latents)
        loss, figures = compare_crops(distance, codec.decoder, crops, output, samples)
        return loss + COMMITMENT * commitment, {**figures, "commitment": commitment.item()}

    def state() -> dict[str, Any]:
        return {"codec": codec.state_dict(), "books": books.state()}

    loop.run(step, state)
    codec.tie_codebooks()
    return codec


def train_b(
    codec: Codec, bank: ClipBank, distance: SoundLoss, folder: Path, minutes: float, device: str
) -> Codec:
    """Trains only the decoder, on the frozen codes of codec A."""
    torch.manual_seed(2)
    codec = codec.to(device)
    distance = distance.to(device)
    loop = TrainingLoop("codec_b", folder, minutes, RATE_B, list(codec.decoder.parameters()))
    saved = loop.resume()
    if saved is not None:
        codec.decoder.load_state_dict(saved["decoder"])
    maker = CropMaker(bank, seed=loop.progress.step + 1)

    def step(number: int) -> tuple[torch.Tensor, dict[str, float]]:
        crops = maker.draw()
        samples = bank.at(crops.starts, HEARD_FRAMES).to(device)
        with torch.no_grad(), autocast_bfloat16(device):
            latents = codec.encoder(samples).float()
        with torch.no_grad():
            latents = codec.quantiser.decode(codec.quantiser.encode(latents))
        with autocast_bfloat16(device):
            output = decode_crops(codec.decoder, crops, latents)
        return compare_crops(distance, codec.decoder, crops, output, samples)

    loop.run(step, lambda: {"decoder": codec.decoder.state_dict()})
    return codec
