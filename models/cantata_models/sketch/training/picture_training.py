"""Teaches the transformer and the text encoder to draw latents from captions: flow matching.

Source: Lipman et al., Flow Matching for Generative Modeling, arXiv 2210.02747; the times are drawn
as in arXiv 2403.03206, section 3.1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from transformers import Qwen2_5_VLForConditionalGeneration

from cantata_layers.training.loop import LEVEL_FIRST, TrainingLoop
from cantata_layers.training.mixed_precision import autocast_bfloat16
from cantata_models.sketch.training.examples import Examples
from cantata_models.sketch.training.networks.transformer import Transformer, packed
from cantata_models.sketch.training.text_encoder import encode_text
from cantata_models.sketch.training.words import CaptionPrompts

BATCH = 32
RATE = 3e-3
MATRIX_RATE = 6e-3
"""Muon's."""
TEXT_RATE = 1e-3
"""The text encoder knows its captions already."""
FURTHER = 0.4
"""Share of these rates for shipped weights. They end at a small rate; the full one would first undo
some of what they have learned."""
TIME_SHIFT = 0.7
"""Mean of the times' logits: noise is shown a little more often than nearly finished pictures."""


class Drawer(nn.Module):
    """The transformer and the text encoder, which train together."""

    def __init__(
        self,
        transformer: Transformer,
        text_encoder: Qwen2_5_VLForConditionalGeneration,
        prompts: CaptionPrompts,
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.text_encoder: Qwen2_5_VLForConditionalGeneration = text_encoder
        self.prompts = prompts

    def text(self, captions: list[str]) -> tuple[Tensor, Tensor]:
        """Gives embeddings `[n, T, c]` and their mask `[n, T]`, False for padding."""
        tokens, mask = self.prompts.batch(captions)
        return encode_text(self.text_encoder, self.prompts, tokens), mask

    def forward(self, noisy: Tensor, times: Tensor, captions: list[str]) -> Tensor:
        """Gives the velocity `[n, P, c]` of packed latents at times `[n]`."""
        text, mask = self.text(captions)
        velocity: Tensor = self.transformer(noisy, times, text, mask)
        return velocity


def optimizers(drawer: Drawer, share: float = 1.0) -> list[torch.optim.Optimizer]:
    """Gives Muon for the matrices between tokens, which learn fastest so, AdamW for the rest.

    Args:
        drawer: what they train.
        share: of the usual rates.
    """
    inner: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, parameter in drawer.transformer.named_parameters():
        matrix = parameter.dim() == 2 and any(part in name for part in (".attn.", "_mlp."))
        (inner if matrix else rest).append(parameter)
    muon = torch.optim.Muon(
        inner, lr=share * MATRIX_RATE, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
    )
    words = {"params": list(drawer.text_encoder.parameters()), "lr": share * TEXT_RATE}
    groups = [{"params": rest, "lr": share * RATE}, words]
    return [muon, torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.0)]


def flow_loss(drawer: Drawer, latents: Tensor, captions: list[str]) -> Tensor:
    """Mean squared error of the velocity at random times, for latents `[n, z, h, w]`."""
    clean = packed(latents)
    noise = torch.randn_like(clean)
    times = torch.sigmoid(torch.randn(len(clean)) + TIME_SHIFT)
    noisy = torch.lerp(clean, noise, times[:, None, None])
    with autocast_bfloat16():
        velocity = drawer(noisy, times, captions)
    error: Tensor = (velocity.float() - (noise - clean)).square().mean()
    return error


def train_drawer(
    drawer: Drawer, examples: Examples, path: Path, minutes: float, *, further: bool
) -> None:
    """Trains until the budget is spent; `further` where the drawer was trained before."""
    rates = optimizers(drawer, FURTHER if further else 1.0)
    loop = TrainingLoop(path, {"network": drawer}, rates, minutes, LEVEL_FIRST, averaged=drawer)
    dice = np.random.default_rng(loop.progress.step)
    smooth = 1.0

    def loss(_: int) -> tuple[Tensor, dict[str, float]]:
        nonlocal smooth
        value = flow_loss(drawer, *examples.draw(BATCH, dice))
        smooth += 0.03 * (float(value.detach()) - smooth)
        return value, {"loss": smooth}

    loop.run(loss)
