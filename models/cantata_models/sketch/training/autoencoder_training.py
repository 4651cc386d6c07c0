"""Teaches the autoencoder the latent code: the decoder to read it, the encoder to write it."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from cantata_layers.training.loop import LEVEL_FIRST, TrainingLoop, make_adamw
from cantata_models.sketch.training.latent_code import LatentCode
from cantata_models.sketch.training.networks.autoencoder import Autoencoder
from cantata_models.sketch.training.pictures import Pixels, TrainingPictures

BATCH = 8
RATE = 2e-3
UNSEEN_IN = 16
"""One picture of this many is kept from the autoencoder, for its gate."""
NOISE = 0.08
"""Up to this much noise on the latents: those of the picture network are never exact."""
EDGE_WEIGHT = 0.5
LOG_VARIANCE = -8.0
"""What the encoder says of every latent: the code has no noise of its own."""


def is_unseen(name: str) -> bool:
    """Tells whether the autoencoder and the latent code never see the picture of this name."""
    return zlib.crc32(name.encode()) % UNSEEN_IN == 0


def seen_pixels(pictures: TrainingPictures) -> Pixels:
    """Gives the pictures that the autoencoder may learn from."""
    return pictures.pixels[[not is_unseen(name) for name in pictures.names]]


def unseen_pixels(pictures: TrainingPictures) -> Pixels:
    """Gives the pictures of the gate."""
    return pictures.pixels[[is_unseen(name) for name in pictures.names]]


def for_convolutions(autoencoder: Autoencoder) -> Autoencoder:
    """Lays the weights out with channels last, with which convolutions take half the time."""
    autoencoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return autoencoder


def as_tensor(pixels: Pixels) -> Tensor:
    """Maps `[n, h, w, 3]` uint8 to `[n, 3, h, w]` in -1..1."""
    values = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
    return (values.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)


def draw_batch(pixels: Pixels, dice: np.random.Generator) -> Pixels:
    """Draws a batch; some mirrored, some with red, green and blue in another order."""
    batch = pixels[dice.integers(0, len(pixels), BATCH)]
    for row in range(BATCH):
        if dice.random() < 0.5:
            batch[row] = batch[row, :, ::-1]
        if dice.random() < 0.3:
            batch[row] = batch[row][..., dice.permutation(3)]
    return batch


def picture_loss(drawn: Tensor, real: Tensor) -> Tensor:
    """Mean absolute difference of the pixels and of their steps to the right and down."""
    difference = drawn - real
    across = difference[..., 1:] - difference[..., :-1]
    down = difference[..., 1:, :] - difference[..., :-1, :]
    return difference.abs().mean() + EDGE_WEIGHT * (across.abs().mean() + down.abs().mean())


def psnr(drawn: Tensor, real: Tensor) -> npt.NDArray[np.float32]:
    """Gives the peak signal-to-noise ratio of every picture in dB, on values of -1..1."""
    error = ((drawn.clamp(-1, 1) - real) / 2).square().mean(dim=(1, 2, 3))
    ratios: npt.NDArray[np.float32] = (-10 * torch.log10(error + 1e-10)).numpy()
    return ratios


@torch.no_grad()
def decoded_psnr(autoencoder: Autoencoder, code: LatentCode, pixels: Pixels) -> float:
    """Mean PSNR in dB of pictures decoded from their own code."""
    ratios = []
    for part in np.array_split(pixels, max(1, len(pixels) // 16)):
        drawn = autoencoder.decode(torch.from_numpy(code.encode(part)))
        ratios.append(psnr(drawn, as_tensor(part)))
    return float(np.concatenate(ratios).mean())


def train_decoder(
    autoencoder: Autoencoder,
    code: LatentCode,
    pictures: TrainingPictures,
    path: Path,
    minutes: float,
) -> None:
    """Trains `decoder` and `post_quant_conv`."""
    parts = [*autoencoder.decoder.parameters(), *autoencoder.post_quant_conv.parameters()]
    optimizer = make_adamw(parts, RATE, weight_decay=1e-4)
    kept = {"network": autoencoder}
    loop = TrainingLoop(path, kept, [optimizer], minutes, LEVEL_FIRST, averaged=autoencoder)
    seen, unseen = seen_pixels(pictures), unseen_pixels(pictures)
    dice = np.random.default_rng(loop.progress.step)

    def loss(_: int) -> tuple[Tensor, dict[str, float]]:
        batch = draw_batch(seen, dice)
        latents = torch.from_numpy(code.encode(batch))
        noise = NOISE * torch.rand(BATCH, 1, 1, 1) * torch.randn_like(latents)
        drawn = autoencoder.decode((latents + noise).contiguous(memory_format=torch.channels_last))
        value = picture_loss(drawn, as_tensor(batch))
        return value, {"loss": float(value.detach())}

    def validate() -> dict[str, float]:
        return {"psnr": decoded_psnr(autoencoder, code, unseen)}

    loop.run(loss, validate if len(unseen) else dict)


def train_encoder(
    autoencoder: Autoencoder,
    code: LatentCode,
    pictures: TrainingPictures,
    path: Path,
    minutes: float,
) -> None:
    """Trains `encoder` and `quant_conv`."""
    parts = [*autoencoder.encoder.parameters(), *autoencoder.quant_conv.parameters()]
    optimizer = make_adamw(parts, RATE, weight_decay=1e-4)
    kept = {"network": autoencoder}
    loop = TrainingLoop(path, kept, [optimizer], minutes, LEVEL_FIRST, averaged=autoencoder)
    seen, unseen = seen_pixels(pictures), unseen_pixels(pictures)
    dice = np.random.default_rng(loop.progress.step)

    def loss(_: int) -> tuple[Tensor, dict[str, float]]:
        batch = draw_batch(seen, dice)
        mean, log_variance = autoencoder.posterior(as_tensor(batch)).chunk(2, dim=1)
        wrong = functional.mse_loss(mean, torch.from_numpy(code.encode(batch)))
        value = wrong + 0.01 * (log_variance - LOG_VARIANCE).square().mean()
        return value, {"loss": float(wrong.detach())}

    def validate() -> dict[str, float]:
        with torch.no_grad():
            mean = autoencoder.encode(as_tensor(unseen))
        wrong = functional.mse_loss(mean, torch.from_numpy(code.encode(unseen)))
        return {"unseen": float(wrong)}

    loop.run(loss, validate if len(unseen) else dict)
