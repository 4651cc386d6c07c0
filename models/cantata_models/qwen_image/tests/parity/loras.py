"""LoRA files of random weights, in the spellings in which they are published.

Letters: R rank.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file

from cantata_layers.random_tensors import TensorSpec, draw
from cantata_models.qwen_image.random_checkpoint.shapes import TINY

WIDTH = TINY.width
LAYERS = {
    "img_in": (64, WIDTH),
    "transformer_blocks.0.attn.to_q": (WIDTH, WIDTH),
    "transformer_blocks.0.attn.add_k_proj": (WIDTH, WIDTH),
    "transformer_blocks.1.attn.to_out.0": (WIDTH, WIDTH),
    "transformer_blocks.1.attn.to_add_out": (WIDTH, WIDTH),
    "transformer_blocks.1.img_mlp.net.0.proj": (WIDTH, 4 * WIDTH),
    "transformer_blocks.2.txt_mlp.net.2": (4 * WIDTH, WIDTH),
    "transformer_blocks.2.img_mod.1": (WIDTH, 6 * WIDTH),
}
"""Inputs and outputs."""


@dataclass(frozen=True, slots=True)
class Lora:
    """A file."""

    file: str
    seed: int
    rank: int
    alpha: float
    prefix: str
    flat: bool = False
    """Underscores for dots."""
    roles: tuple[str, str] = ("lora_A", "lora_B")
    alpha_tensors: bool = False
    """Otherwise the alpha stands in the metadata."""


LORAS: Mapping[str, Lora] = {
    "peft": Lora("style.safetensors", 5, 4, 8.0, "transformer."),
    "kohya": Lora(
        "other.safetensors",
        6,
        2,
        1.0,
        "lora_unet_",
        flat=True,
        roles=("lora_down", "lora_up"),
        alpha_tensors=True,
    ),
    "lightning": Lora(
        "Qwen-Image-Lightning-4steps-V1.0.safetensors",
        7,
        4,
        4.0,
        "",
        roles=("lora_down", "lora_up"),
        alpha_tensors=True,
    ),
}


def write_lora(folder: Path, lora: Lora) -> Path:
    """Write one into a folder."""
    tensors = {}
    for layer, (inputs, outputs) in LAYERS.items():
        name = lora.prefix + (layer.replace(".", "_") if lora.flat else layer)
        down = TensorSpec(f"{layer}.down", (lora.rank, inputs), inputs**-0.5)
        up = TensorSpec(f"{layer}.up", (outputs, lora.rank), 0.3)
        for role, spec in zip(lora.roles, (down, up), strict=True):
            tensors[f"{name}.{role}.weight"] = torch.from_numpy(draw(spec, lora.seed))
        if lora.alpha_tensors:
            tensors[f"{name}.alpha"] = torch.tensor(lora.alpha)
    said = {
        "transformer.r": lora.rank,
        "transformer.lora_alpha": lora.alpha,
        "transformer.target_modules": sorted(LAYERS),
    }
    metadata = {"format": "pt"}
    if not lora.alpha_tensors:
        metadata["lora_adapter_metadata"] = json.dumps(said)
    path = folder / lora.file
    save_file(tensors, path, metadata=metadata)
    return path
