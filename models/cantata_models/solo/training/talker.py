"""Stage talker: text track, durations and backbone learn to predict the codec's latents.

The talker regresses the latent (squared and absolute error), which is then quantized. Sampling the
codes themselves would need far more data for the same intelligibility.
"""

from __future__ import annotations

import logging
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from cantata_layers.training.loop import HALF_COSINE, TrainingLoop, make_adamw
from cantata_layers.training.mixed_precision import autocast_bfloat16
from cantata_models.solo.checkpoint import TALKER_FILE, read_tensors
from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.codec_encoder import ResidualQuantizer
from cantata_models.solo.networks.talker import SoloTalkerNetwork
from cantata_models.solo.networks.text_track import SLOTS_PER_FRAME
from cantata_models.solo.training.examples import Batch, BatchMaker, Example, collate, split
from cantata_models.solo.training.speaker_vectors import SpeakerVectors

logger = logging.getLogger(__name__)

BATCH_FRAMES = 650
RATE = 1.3e-3
DROPPED_FRAMES = (0.15, 0.35)
"""Range of the share of previous frames replaced by the BOS row, drawn per batch."""
OWN_FRAMES = 0.5
"""Share of previous frames replaced by the talker's own output."""
OWN_FRAMES_EVERY = 3
"""In steps: the extra forward pass costs a third of a step."""
OWN_FRAMES_FROM = 300
"""Own frames are used after this step; before that the talker's output is noise."""
DURATION_WEIGHT = 0.5
VALIDATION_BATCHES = 6


class TalkerTrainer(nn.Module):
    """Computes a talker's losses on a batch."""

    def __init__(self, talker: SoloTalkerNetwork, device: str) -> None:
        super().__init__()
        self.talker = talker
        self.device = device
        books = talker.latent_head.codebooks
        self.quantizer = ResidualQuantizer(*books.shape).to(device)
        self.quantizer.codebooks.copy_(books)

    def track(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the [B, T, D] track with true durations, and the log durations [B, N]."""
        text, mask = self.talker.text_track, batch.phone_mask()
        phones = batch.phones.clamp(min=0)
        speaker = text.speaker(batch.speaker)
        arguments = (phones, batch.word_start, batch.question, speaker, mask)
        log_durations = text.log_durations(*arguments)
        encoded = text.phones(*arguments)
        length = batch.latents.shape[1] * SLOTS_PER_FRAME
        expanded = torch.stack(
            [text.expand(*pair, length) for pair in zip(encoded, batch.slots, strict=True)]
        )
        slot_mask = batch.frame_mask().repeat_interleave(SLOTS_PER_FRAME, dim=1)
        return text.rows(expanded, slot_mask), log_durations

    def hidden_to_normalized(self, track: torch.Tensor, previous: torch.Tensor) -> torch.Tensor:
        """[B, T, D] track and embedded previous frames -> [B, T, Z] normalized latents."""
        head = self.talker.latent_head
        return head.normalized(self.talker.backbone(track + previous)).float()

    def embed_previous(self, latents: torch.Tensor, drop: float) -> torch.Tensor:
        """[B, T, Z] frame latents -> [B, T, D] rows shifted by one, some replaced by BOS."""
        embedding = self.talker.frame_embedding
        rows = functional.pad(embedding.project(latents[:, :-1]), (0, 0, 1, 0))
        missing = torch.rand(rows.shape[:2], device=rows.device) < drop
        missing[:, 0] = True
        return torch.where(missing.unsqueeze(-1), embedding.bos(), rows)

    def forward(
        self, batch: Batch, own_share: float, drop: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns the mean squared and absolute errors of normalized latents and duration error."""
        head, mask = self.talker.latent_head, batch.frame_mask()
        heard = self.quantizer.decode(batch.codes)
        with autocast_bfloat16(self.device):
            track, log_durations = self.track(batch)
        if own_share > 0:
            own = self.own_latents(track, heard, drop)
            swap = torch.rand(heard.shape[:2], device=heard.device) < own_share
            heard = torch.where(swap.unsqueeze(-1), own, heard)
        with autocast_bfloat16(self.device):
            predicted = self.hidden_to_normalized(track, self.embed_previous(heard, drop))
        wanted = (batch.latents - head.mean) / head.std
        difference = (predicted - wanted) * mask
        count = mask.sum() * difference.shape[-1]
        squared = difference.square().sum() / count
        absolute = difference.abs().sum() / count
        phone_mask = batch.phone_mask().squeeze(-1)
        wanted_logs = usual_log_durations(batch)
        duration = ((log_durations.float() - wanted_logs).abs() * phone_mask).sum()
        return squared, absolute, duration / phone_mask.sum()

    @torch.no_grad()
    def own_latents(self, track: torch.Tensor, heard: torch.Tensor, drop: float) -> torch.Tensor:
        """Returns [B, T, Z]: the quantized latents that the talker predicts from true frames."""
        head = self.talker.latent_head
        with autocast_bfloat16(self.device):
            normalized = self.hidden_to_normalized(track, self.embed_previous(heard, drop))
        codes = self.quantizer.encode(normalized * head.std + head.mean)
        return self.quantizer.decode(codes)


def usual_log_durations(batch: Batch) -> torch.Tensor:
    """Returns [B, N]: log(slots + 1) at the speaker's usual pace. For a request at another speed,
    durations are divided afterwards."""
    return torch.log(batch.slots * batch.rate.unsqueeze(1) + 1)


def set_latent_statistics(talker: SoloTalkerNetwork, examples: list[Example]) -> None:
    """Sets the head's mean and deviation per latent dimension."""
    latents = torch.cat([item.latents for item in examples])
    talker.latent_head.mean.copy_(latents.mean(dim=0))
    talker.latent_head.std.copy_(latents.std(dim=0).clamp(min=1e-3))


def new_talker(
    config: SoloConfig,
    codebooks: torch.Tensor,
    examples: list[Example],
    speakers: SpeakerVectors,
    start: Path | None = None,
) -> SoloTalkerNetwork:
    """Returns a talker with the codec's codebooks and latent statistics and the stock speakers.

    A weight starts from the exported weights (`start`) if they have one of the same name and shape.
    Other weights are random.
    """
    torch.manual_seed(3)
    talker = SoloTalkerNetwork(config)
    for name, parameter in talker.named_parameters():
        if parameter.ndim == 2 and "layers" in name:
            nn.init.normal_(parameter, std=0.02)
    if start is not None:
        known = dict(talker.named_parameters())
        found = read_tensors(start / TALKER_FILE)
        same = {k: t for k, t in found.items() if k in known and known[k].shape == t.shape}
        talker.load_state_dict(same, strict=False)
    talker.set_codebooks(codebooks)
    set_latent_statistics(talker, examples)
    talker.text_track.stock_speakers.copy_(speakers.stock)
    talker.text_track.speaker.mean.copy_(speakers.mean)
    talker.text_track.speaker.std.copy_(speakers.std)
    return talker


def train_talker(
    talker: SoloTalkerNetwork,
    examples: list[Example],
    speakers: SpeakerVectors,
    folder: Path,
    minutes: float,
    device: str,
) -> SoloTalkerNetwork:
    """Trains the talker and returns it with the last checkpoint's weights."""
    train, validation = split(examples)
    talker = talker.to(device)
    trainer = TalkerTrainer(talker, device)
    optimizer = make_adamw(talker.parameters(), RATE, weight_decay=0.02)
    loop = TrainingLoop(folder / "talker.pt", {"talker": talker}, [optimizer], minutes, HALF_COSINE)
    maker = BatchMaker(train, BATCH_FRAMES, loop.progress.step)
    held = BatchMaker(validation, BATCH_FRAMES, 0)
    checks = [collate(held.draw(), speakers, device) for _ in range(VALIDATION_BATCHES)]

    def step(number: int) -> tuple[torch.Tensor, dict[str, float]]:
        low, high = DROPPED_FRAMES
        drop = low + (high - low) * float(torch.rand(()))
        feed_own = number > OWN_FRAMES_FROM and number % OWN_FRAMES_EVERY == 0
        own = OWN_FRAMES if feed_own else 0.0
        squared, absolute, duration = trainer(collate(maker.draw(), speakers, device), own, drop)
        loss = squared + absolute + DURATION_WEIGHT * duration
        figures = {"squared": squared.item(), "duration": duration.item()}
        return loss, figures

    @torch.no_grad()
    def validate() -> dict[str, float]:
        rows = torch.tensor([[x.item() for x in trainer(batch, 0.0, 0.0)] for batch in checks])
        squared, absolute, duration = rows.mean(dim=0).tolist()
        return {"valid_squared": squared, "valid_absolute": absolute, "valid_duration": duration}

    loop.run(step, validate)
    return talker
