"""Writes a small checkpoint of random weights in the published format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from cantata_layers.random_rules import Rules, Shape, gain, lengths, norm, specify, values
from cantata_layers.random_tensors import TensorSpec, draw, write_json
from cantata_models.kokoro.checkpoint import PARTS, PUBLISHED_FILES, Kokoro
from cantata_models.kokoro.config import CONFIG_FILE, load_config
from cantata_models.kokoro.voices import FOLDER

VOICES = ("af_heart", "am_adam", "bf_emma")
WIDTH, SKIPPED = 24, 6
LETTERS = (
    ';:,.!?—…"()“” \u0303AIOQSTWYᵊabcdefhijklmnopqrstuvwxyz'
    "ɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔˈˌːʰʲᵻ"
)
"""Phones in an order of their own, so that no program can rely on the published ids."""
_NORMED = re.compile(
    r"\.(conv1|conv2|conv1x1|pool|convs[12]\.\d+|cnn\.\d+\.0|F0_conv|N_conv|asr_res\.0"
    r"|ups\.\d+|conv_post)\.weight$"
)
"""Weights that are published as a length and a direction."""
_AFFINE = re.compile(r"\.norm\.(weight|bias)$")
RULES: Rules = {
    # These decide pitch, pace and loudness.
    r"F0_proj\.bias$": values(0.0, 170.0),
    r"linear_layer\.bias$": values(0.5, -1.5),
    r"conv_post\.bias$": values(0.5, -3.0),
    r"F0_proj\.weight$": gain(70.0),
    r"linear_layer\.weight$": gain(10.0),
    r"bert_encoder\.weight$": gain(4.0),
    r"conv_post\.weight_g$": lengths(0.15),
    r"\.weight_g$": lengths(1.0),
    r"\.weight_v$": values(1.0),
    r"\.alpha|gamma$|noise_convs\.1\.weight$": norm(1.0),
    r"beta$|\.bias_": values(0.2),
    r"embeddings?\.weight$": values(1.0),
    # Enough that what one phone is decides how it is spoken.
    r"\.weight_[ih]h": gain(2.0),
}

TINY: dict[str, Any] = {
    "istftnet": {
        "upsample_kernel_sizes": [20, 12],
        "upsample_rates": [10, 6],
        "gen_istft_hop_size": 5,
        "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5]],
        "resblock_kernel_sizes": [3, 7],
        "upsample_initial_channel": 32,
    },
    "dim_in": 64,
    "dropout": 0.2,
    "hidden_dim": 32,
    "max_conv_dim": 512,
    "max_dur": 10,
    "multispeaker": True,
    "n_layer": 2,
    "n_mels": 80,
    "n_token": 178,
    "style_dim": 128,
    "text_encoder_kernel_size": 5,
    "plbert": {
        "hidden_size": 48,
        "num_attention_heads": 3,
        "intermediate_size": 64,
        "max_position_embeddings": 512,
        "num_hidden_layers": 3,
        "dropout": 0.1,
    },
    "vocab": {letter: number for number, letter in enumerate(LETTERS, 1)},
}
"""The published keys."""


def write_checkpoint(
    folder: Path, seed: int = 0, *, affine: bool = False, wrapped: bool = True
) -> Path:
    """Write a checkpoint into `folder`, which need not exist, and return it.

    Args:
        folder: gets config.json, the weights and `voices/`.
        seed: of all weights and styles.
        affine: with gains and offsets of the norms, which published files leave out.
        wrapped: with `module.` in front of each name, as published.
    """
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    write_json(folder / CONFIG_FILE, TINY)
    config = load_config(folder)
    with torch.device("meta"):
        network = Kokoro(config, WIDTH, SKIPPED)
    shapes = {
        published: shape
        for name, parameter in network.named_parameters()
        if affine or not _AFFINE.search(name)
        for published, shape in _publish(name, tuple(parameter.shape))
    }
    parts: dict[str, dict[str, torch.Tensor]] = {part: {} for part in PARTS}
    prefix = "module." if wrapped else ""
    for spec in specify(shapes, RULES):
        part, _, rest = spec.name.partition(".")
        parts[part][prefix + rest] = torch.from_numpy(draw(spec, seed))
    torch.save(parts, folder / PUBLISHED_FILES[0])
    for voice in VOICES:
        shape = (config.max_phones, 1, 2 * config.style)
        style = draw(TensorSpec(voice, shape, 0.5), seed)
        torch.save(torch.from_numpy(style), folder / FOLDER / f"{voice}.pt")
    return folder


def _publish(name: str, shape: Shape) -> Iterator[tuple[str, Shape]]:
    """Yield what is published for a weight: one tensor, or a direction and a length."""
    if _NORMED.search(name):
        yield f"{name}_v", shape
        yield f"{name}_g", (shape[0], *[1] * (len(shape) - 1))
    else:
        yield name, shape


def write_tiny(folder: Path) -> None:
    """Write a small checkpoint of random weights."""
    write_checkpoint(folder)
