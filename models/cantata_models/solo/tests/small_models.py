"""Small networks with random weights, for tests that need no checkpoint."""

from __future__ import annotations

import torch

from cantata_models.solo.config import CodecConfig, SoloConfig, TalkerConfig, TextConfig
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.talker import SoloTalkerNetwork

SMALL = SoloConfig(
    talker=TalkerConfig(
        hidden_size=64, layers=2, heads=4, kv_heads=2, head_dim=32, intermediate_size=96
    ),
    text=TextConfig(
        channels=32, phone_blocks=2, slot_blocks=1, duration_channels=32, duration_blocks=1
    ),
    codec=CodecConfig(
        codebook_size=32,
        latent_size=16,
        encoder_channels=32,
        encoder_blocks=1,
        frame_channels=64,
        frame_blocks=1,
        decoder_channels=32,
        decoder_blocks=2,
    ),
)


def small_decoder() -> CodecDecoder:
    """Returns a decoder whose output is loud enough to compare."""
    torch.manual_seed(0)
    decoder = CodecDecoder(SMALL.codec).eval().requires_grad_(False)
    decoder.codebooks.normal_()
    return decoder


def small_talker() -> SoloTalkerNetwork:
    """Returns a talker with random codebooks."""
    torch.manual_seed(1)
    talker = SoloTalkerNetwork(SMALL).eval().requires_grad_(False)
    codec = SMALL.codec
    talker.set_codebooks(torch.randn(codec.codebooks, codec.codebook_size, codec.latent_size))
    talker.frame_embedding.first.normal_()
    talker.text_track.stock_speakers.normal_()
    return talker


def random_codes(*shape: int) -> torch.Tensor:
    """Returns [*shape, Q] int64 codes."""
    generator = torch.Generator().manual_seed(2)
    size = (*shape, SMALL.codec.codebooks)
    return torch.randint(0, SMALL.codec.codebook_size, size, generator=generator)
