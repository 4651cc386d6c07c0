"""Stage polish: the decoder learns to reproduce the teacher's audio from the talker's own codes.

The talker's latents are smoother than the encoder's. A decoder trained on them sounds clearer.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch

from cantata_layers.training.loop import HALF_COSINE, TrainingLoop, make_adamw
from cantata_layers.training.mixed_precision import autocast_bfloat16
from cantata_layers.training.progress import tracked
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.talker import SoloTalkerNetwork
from cantata_models.solo.training.crops import (
    HEARD_FRAMES,
    ClipBank,
    CropMaker,
    compare_crops,
    decode_crops,
)
from cantata_models.solo.training.examples import Example, collate
from cantata_models.solo.training.losses import SoundLoss
from cantata_models.solo.training.speaker_vectors import SpeakerVectors
from cantata_models.solo.training.talker import TalkerTrainer

logger = logging.getLogger(__name__)

RATE = 4e-4
TRUE_SHARE = 0.35
"""Share of crops that keep the encoder's codes, so that reconstruction does not get worse."""
PASSES = 3
"""In each pass the talker is fed its own output from the previous pass. The last pass is close to
free-running output, at a fraction of the cost."""
GROUP = 24


@torch.no_grad()
def own_latents(
    talker: SoloTalkerNetwork, examples: list[Example], speakers: SpeakerVectors, device: str
) -> list[torch.Tensor]:
    """Returns, per example, the [T, Z] quantized latents that the talker itself predicts."""
    trainer = TalkerTrainer(talker.to(device), device)
    order = sorted(range(len(examples)), key=lambda i: examples[i].frames)
    groups = [order[i : i + GROUP] for i in range(0, len(order), GROUP)]
    said: dict[int, torch.Tensor] = {}
    for group in tracked(groups, len(groups), "talker's latents"):
        batch = collate([examples[i] for i in group], speakers, device)
        latents = trainer.quantizer.decode(batch.codes)
        with autocast_bfloat16(device):
            track, _ = trainer.track(batch)
        for _ in range(PASSES):
            latents = trainer.own_latents(track, latents, 0.0)
        for row, index in enumerate(group):
            said[index] = latents[row, : examples[index].frames].cpu()
    return [said[i] for i in range(len(examples))]


def polish(
    decoder: CodecDecoder,
    talker: SoloTalkerNetwork,
    examples: list[Example],
    speakers: SpeakerVectors,
    bank: ClipBank,
    distance: SoundLoss,
    folder: Path,
    minutes: float,
    device: str,
) -> CodecDecoder:
    """Fine-tunes the decoder in place. `bank` holds the examples' audio in the same order."""
    torch.manual_seed(4)
    decoder = decoder.to(device)
    distance = distance.to(device)
    optimizer = make_adamw(decoder.parameters(), RATE)
    loop = TrainingLoop(
        folder / "polish.pt", {"decoder": decoder}, [optimizer], minutes, HALF_COSINE
    )
    own = torch.cat(own_latents(talker, examples, speakers, device))
    true = torch.cat([decoder.latents(item.codes.to(device)[None])[0].cpu() for item in examples])
    if len(own) != len(bank.samples) // bank.frame:
        raise ValueError("the sound and the examples do not belong together")
    maker = CropMaker(bank, seed=loop.progress.step + 2)
    rng = np.random.default_rng(loop.progress.step + 3)

    def step(number: int) -> tuple[torch.Tensor, dict[str, float]]:
        crops = maker.draw()
        rows = [
            (true if rng.random() < TRUE_SHARE else own)[start : start + HEARD_FRAMES]
            for start in crops.starts.tolist()
        ]
        samples = bank.at(crops.starts, HEARD_FRAMES).to(device)
        with autocast_bfloat16(device):
            output = decode_crops(decoder, crops, torch.stack(rows).to(device))
        return compare_crops(distance, decoder, crops, output, samples)

    loop.run(step)
    return decoder
