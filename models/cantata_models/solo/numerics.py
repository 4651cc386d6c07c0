"""Checks that solo's matrix products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

import torch

from cantata.contract.model.numerics import NumericsReport, find_differing_counts
from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.packed_product import PackedProduct, describe, missing_rows

_COUNTS = (*range(1, 17), 31, 32, 37, 64, 121, 127)
_AMONG = 120


def served_shapes(config: SoloConfig) -> list[tuple[int, int]]:
    """(inputs, outputs) of every product in a request; kernels differ by shape."""
    talker, text, codec = config.talker, config.text, config.codec
    hidden, heads = talker.hidden_size, talker.head_dim * talker.heads
    frame, hop = codec.frame_channels, codec.decoder_channels
    return [
        # the backbone, as vLLM fuses it
        (hidden, heads + 2 * talker.head_dim * talker.kv_heads),
        (heads, hidden),
        (hidden, 2 * talker.intermediate_size),
        (talker.intermediate_size, hidden),
        # codes in and out
        (codec.latent_size, hidden),
        (hidden, hidden),
        (hidden, codec.latent_size),
        (codec.latent_size, codec.codebook_size),
        # the text track
        (text.channels, 2 * text.channels),
        (2 * text.channels, text.channels),
        (text.duration_channels, 2 * text.duration_channels),
        (2 * text.duration_channels, text.duration_channels),
        (text.duration_channels, 1),
        (3, text.channels),
        (4 * text.channels, hidden),
        (text.speaker_channels, text.channels),
        (text.speaker_channels, text.duration_channels),
        (text.speaker_size, text.speaker_channels),
        # the codec's decoder
        (codec.latent_size, frame),
        (frame, 3 * frame),
        (3 * frame, frame),
        (frame, codec.samples_per_frame // codec.hop * hop),
        (hop, codec.decoder_expansion * hop),
        (codec.decoder_expansion * hop, hop),
        (hop, 992),
    ]


def check_numerics() -> NumericsReport:
    """Multiplies random weights of every shape, with FBGEMM and with oneDNN."""
    generator = torch.Generator().manual_seed(0)
    differing = []
    for inputs, outputs in served_shapes(SoloConfig()):
        weight = torch.randn(outputs, inputs, generator=generator)
        row = torch.randn(inputs, generator=generator)
        for kind, made_of in (("float16", weight.half().float()), ("float32", weight)):
            if counts := find_differing_counts(PackedProduct(made_of), row, _COUNTS, _AMONG):
                shown = ", ".join(map(str, counts))
                differing.append(f"{inputs} x {outputs} {kind} with {shown} rows")
    if differing:
        return NumericsReport(exact=False, found="; ".join(differing))
    return NumericsReport(exact=True, found=describe(missing_rows()))
