"""Draws pictures as the published pipeline does, for the gates and for a look during training.

Source: the sigmas, the guidance and the update are those of diffusers' QwenImagePipeline 0.42.1.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from cantata_models.sketch.request_builder import GUIDANCE, NEGATIVE, SIDE, STEPS
from cantata_models.sketch.training.networks.autoencoder import Autoencoder
from cantata_models.sketch.training.networks.transformer import packed, unpacked
from cantata_models.sketch.training.picture_training import Drawer
from cantata_models.sketch.training.pictures import Pixels

CHANNELS = 16
LOW, HIGH = (256, 0.5), (8192, 0.9)
"""Tokens of a picture and the shift for so many; the shift of others lies on their line."""
TERMINAL = 0.02
"""The last time before the picture is finished."""


def sigmas(steps: int, tokens: int) -> Tensor:
    """Gives the times `[steps + 1]`, from 1 to 0."""
    (low, low_shift), (high, high_shift) = LOW, HIGH
    mu = low_shift + (high_shift - low_shift) * (tokens - low) / (high - low)
    even = torch.linspace(1, 1 / steps, steps)
    shifted = math.exp(mu) / (math.exp(mu) + 1 / even - 1)
    stretched = 1 - (1 - shifted) * (1 - TERMINAL) / (1 - shifted[-1])
    return torch.cat([stretched, torch.zeros(1)])


@torch.no_grad()
def draw_latents(
    drawer: Drawer,
    captions: list[str],
    seed: int,
    steps: int = STEPS,
    guidance: float = GUIDANCE,
) -> Tensor:
    """Gives latents `[n, 16, 16, 16]`; picture i begins from the noise of `seed + i`."""
    shape, count = (1, CHANNELS, SIDE // 8, SIDE // 8), len(captions)
    generators = [torch.Generator().manual_seed(seed + place) for place in range(count)]
    noise = [torch.randn(shape, generator=generator) for generator in generators]
    x = packed(torch.cat(noise))
    text, mask = drawer.text(captions + [NEGATIVE] * count)
    times = sigmas(steps, x.shape[1])
    for now, then in pairwise(times):
        both = drawer.transformer(torch.cat([x, x]), now.expand(2 * count), text, mask)
        wanted, unwanted = both.chunk(2)
        guided = unwanted + guidance * (wanted - unwanted)
        guided = guided * (wanted.norm(dim=-1, keepdim=True) / guided.norm(dim=-1, keepdim=True))
        x = x + (then - now) * guided
    return unpacked(x)


@torch.no_grad()
def draw_pictures(
    drawer: Drawer, autoencoder: Autoencoder, captions: list[str], seed: int = 0
) -> Pixels:
    """Gives pictures `[n, 128, 128, 3]` uint8."""
    drawn = []
    for first in range(0, len(captions), 16):
        latents = draw_latents(drawer, captions[first : first + 16], seed + first)
        pictures = autoencoder.decode(latents.contiguous(memory_format=torch.channels_last))
        drawn.append(pictures.clamp(-1, 1).add(1).mul(127.5).round().byte())
    pixels: Pixels = torch.cat(drawn).permute(0, 2, 3, 1).contiguous().numpy()
    return pixels
