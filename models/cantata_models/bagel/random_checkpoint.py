"""Small checkpoints of random weights in the published layout (`python -m`)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cantata_layers.random_qwen_tokenizer import ordinary_tokens, write_qwen_tokenizer
from cantata_layers.random_rules import Rules, gain, norm, specify, values
from cantata_layers.random_tensors import PEAKY, TensorSpec, write_json, write_tensors
from cantata_models.bagel.config import (
    AUTOENCODER,
    LANGUAGE,
    PATCH,
    VISION,
    WEIGHTS,
    BagelConfig,
    load_config,
)
from cantata_models.bagel.reader import (
    LANGUAGE_NAMES,
    LATENT_NAMES,
    VISION_NAMES,
    BagelLanguageModel,
    LatentTokens,
)
from cantata_models.bagel.vae import (
    DECODER,
    ENCODER,
    BagelDecoderNetwork,
    BagelEncoderNetwork,
    VaeShape,
)
from cantata_models.bagel.vision import Vision

WORDS = ("a", "Ġred", "Ġheart", "<think>", "</think>")
MARKS = {
    "<|endoftext|>": 0,
    "<|im_start|>": 1,
    "<|im_end|>": 2,
    "<|vision_start|>": 9,
    "<|vision_end|>": 10,
    "<|vision_pad|>": 11,
    "<|image_pad|>": 12,
    "<|video_pad|>": 13,
}
"""Published ids, less that of the first."""


@dataclass(frozen=True, slots=True)
class BagelShape:
    width: int = 64
    inner: int = 96
    layers: int = 2
    heads: int = 4
    key_heads: int = 2
    vision_width: int = 48
    vision_inner: int = 80
    vision_layers: int = 3
    """As the file says: the last one has no weights."""
    vision_heads: int = 4
    vision_side: int = 70
    """Patches of the largest picture."""
    latent_side: int = 64
    """Tokens of the largest picture."""
    vae_widths: tuple[int, ...] = (32, 32, 32, 64)
    vae_blocks: int = 1

    @property
    def vocabulary(self) -> int:
        """Tokens; each is spelled somehow, so that any thought is a text."""
        return max(special_ids().values()) + 1


TINY = BagelShape()
REDUCED = BagelShape(
    width=512,
    inner=2560,
    layers=8,
    heads=8,
    key_heads=2,
    vision_width=256,
    vision_inner=1024,
    vision_layers=7,
    vae_widths=(32, 64, 128, 128),
    vae_blocks=2,
)
"""A seventh of the published width, for a few CPU cores."""
SIZES = {"tiny": TINY, "reduced": REDUCED}
VISION_PATCH, LATENT_CHANNELS = 14, 16


def special_ids() -> dict[str, int]:
    """The marks' ids in the small vocabulary, in their published order."""
    first = ordinary_tokens(WORDS)
    return {token: first + offset for token, offset in MARKS.items()}


RULES: Rules = {
    r"embed_tokens": values(1.0),
    r"pos_embed$|position_embedding": values(0.7),
    r"vit_model.*self_attn.*\.weight$": gain(1.5),
    # Below that of a Qwen3: keys of one position, as a picture's, are alike enough.
    r"[qk]_norm": norm(PEAKY / 2),
    r"(?:o_proj|down_proj).*\.weight$": gain(2.0),
    r"decoder\.conv_out\.weight$": gain(0.5),
}


def model_tensors(config: BagelConfig, latents: int, latent_side: int) -> Iterator[TensorSpec]:
    """Yield those of language model, latents and vision.

    Args:
        latents: channels.
        latent_side: tokens of the largest picture.
    """
    width = config.language.width
    with torch.device("meta"):
        language = BagelLanguageModel(config.language)
        tokens = LatentTokens(PATCH**2 * latents, width, latent_side**2)
        vision = Vision(config.vision, width, config.vision.side**2)
    shapes = (
        LANGUAGE_NAMES.shapes(language) | LATENT_NAMES.shapes(tokens) | VISION_NAMES.shapes(vision)
    )
    yield from specify(shapes, RULES)


def vae_tensors(shape: VaeShape) -> Iterator[TensorSpec]:
    """Yield those of the autoencoder."""
    with torch.device("meta"):
        encoder, decoder = BagelEncoderNetwork(shape), BagelDecoderNetwork(shape)
    yield from specify(ENCODER.shapes(encoder) | DECODER.shapes(decoder), RULES)


def write_checkpoint(
    folder: Path, seed: int, shape: BagelShape = TINY, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint into `folder` and return it. `folder`: made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", {"model_type": "bagel"})
    write_json(folder / LANGUAGE, _language(shape))
    write_json(folder / VISION, _vision(shape))
    write_qwen_tokenizer(folder, special_ids(), words=WORDS)
    model = model_tensors(load_config(folder), LATENT_CHANNELS, shape.latent_side)
    write_tensors(folder / f"{WEIGHTS}.safetensors", model, seed, dtype)
    vae = vae_tensors(VaeShape(shape.vae_widths, shape.vae_blocks, LATENT_CHANNELS))
    write_tensors(folder / f"{AUTOENCODER}.safetensors", vae, seed, dtype)
    return folder


def _language(shape: BagelShape) -> dict[str, Any]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_act": "silu",
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "max_position_embeddings": 32768,
        "max_window_layers": shape.layers,
        "model_type": "qwen2",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.key_heads,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "vocab_size": shape.vocabulary,
    }


def _vision(shape: BagelShape) -> dict[str, Any]:
    return {
        "hidden_size": shape.vision_width,
        "image_size": shape.vision_side * VISION_PATCH,
        "intermediate_size": shape.vision_inner,
        "model_type": "siglip_vision_model",
        "num_attention_heads": shape.vision_heads,
        "num_hidden_layers": shape.vision_layers,
        "patch_size": VISION_PATCH,
    }


def write_tiny(folder: Path) -> None:
    write_checkpoint(folder, seed=1)


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.bagel.random_checkpoint",
        description="Write a checkpoint with random weights (tiny: 4 MB, reduced: 0.3 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="reduced")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(write_checkpoint(arguments.folder, arguments.seed, SIZES[arguments.size]))


if __name__ == "__main__":
    main()
