"""Writes and reads the published layout of Qwen-Image: a folder for each part, float16."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from cantata_models.sketch.training.latent_code import LatentCode
from cantata_models.sketch.training.networks.autoencoder import (
    Autoencoder,
    AutoencoderSize,
    from_published,
    published_tensors,
)
from cantata_models.sketch.training.networks.transformer import Transformer, TransformerSize
from cantata_models.sketch.training.picture_training import Drawer
from cantata_models.sketch.training.text_encoder import new_text_encoder
from cantata_models.sketch.training.words import CaptionPrompts

PART_WEIGHTS = "diffusion_pytorch_model.safetensors"
TEXT_WEIGHTS = "model.safetensors"
TRANSFORMER, VAE, TEXT_ENCODER = "transformer", "vae", "text_encoder"
TOKENIZER, SCHEDULER = "tokenizer", "scheduler"
INDEX = "model_index.json"
CODE = "latent_code.safetensors"
"""What the autoencoder was taught; needed only to train further."""
LAYOUT_VERSION = "0.42.1"
"""The release of diffusers whose layout this is."""
HEAD = "lm_head.weight"
"""Tied to the word embeddings, so it is not written."""
SCHEDULE = {
    "_class_name": "FlowMatchEulerDiscreteScheduler",
    "_diffusers_version": LAYOUT_VERSION,
    "num_train_timesteps": 1000,
    "shift": 1.0,
    "use_dynamic_shifting": True,
    "base_shift": 0.5,
    "max_shift": 0.9,
    "base_image_seq_len": 256,
    "max_image_seq_len": 8192,
    "shift_terminal": 0.02,
    "time_shift_type": "exponential",
    "invert_sigmas": False,
    "use_karras_sigmas": False,
    "use_exponential_sigmas": False,
    "use_beta_sigmas": False,
    "stochastic_sampling": False,
}
"""The published schedule."""
PARTS = {
    "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
    "text_encoder": ["transformers", "Qwen2_5_VLForConditionalGeneration"],
    "tokenizer": ["transformers", "Qwen2Tokenizer"],
    "transformer": ["diffusers", "QwenImageTransformer2DModel"],
    "vae": ["diffusers", "AutoencoderKLQwenImage"],
}


def write_checkpoint(
    drawer: Drawer, autoencoder: Autoencoder, code: LatentCode, tokenizer: Path, folder: Path
) -> None:
    """Writes the whole checkpoint beside `folder`, then puts it in its place."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    index = {"_class_name": "QwenImagePipeline", "_diffusers_version": LAYOUT_VERSION, **PARTS}
    _write_json(part / INDEX, index)
    _write_json(part / SCHEDULER / "scheduler_config.json", SCHEDULE)
    shutil.copytree(tokenizer, part / TOKENIZER)
    _write_part(part / TRANSFORMER, _transformer_config(drawer), drawer.transformer.state_dict())
    _write_part(part / VAE, _autoencoder_config(autoencoder), published_tensors(autoencoder))
    _write_text_encoder(drawer, part / TEXT_ENCODER)
    code.save(part / CODE)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def read_drawer(folder: Path) -> Drawer:
    """Reads transformer, text encoder and tokenizer, ready to draw or to train on."""
    config = json.loads((folder / TRANSFORMER / "config.json").read_text())
    prompts = CaptionPrompts(folder / TOKENIZER)
    size = {key: config[key] for key in asdict(TransformerSize())}
    size["axes_dims_rope"] = tuple(size["axes_dims_rope"])
    drawer = Drawer(Transformer(TransformerSize(**size)), new_text_encoder(prompts), prompts)
    drawer.transformer.load_state_dict(_read(folder / TRANSFORMER / PART_WEIGHTS))
    text = _read(folder / TEXT_ENCODER / TEXT_WEIGHTS)
    text[HEAD] = text["model.language_model.embed_tokens.weight"]
    drawer.text_encoder.load_state_dict(text)
    return drawer.eval()


def read_autoencoder(folder: Path) -> Autoencoder:
    """Reads both halves of the autoencoder."""
    config = json.loads((folder / VAE / "config.json").read_text())
    size = {key: config[key] for key in asdict(AutoencoderSize())}
    size["dim_mult"] = tuple(size["dim_mult"])
    autoencoder = Autoencoder(AutoencoderSize(**size))
    autoencoder.load_state_dict(from_published(_read(folder / VAE / PART_WEIGHTS)))
    return autoencoder.eval()


def _read(path: Path) -> dict[str, Tensor]:
    return {name: tensor.float() for name, tensor in load_file(path).items()}


def _write_part(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    _write_json(folder / "config.json", config)
    _write_tensors(folder / PART_WEIGHTS, tensors)


def _write_text_encoder(drawer: Drawer, folder: Path) -> None:
    config = drawer.text_encoder.config.to_diff_dict()
    config.update(architectures=["Qwen2_5_VLForConditionalGeneration"], dtype="float16")
    _write_json(folder / "config.json", config)
    tensors = drawer.text_encoder.state_dict()
    _write_tensors(folder / TEXT_WEIGHTS, {name: tensors[name] for name in tensors if name != HEAD})


def _transformer_config(drawer: Drawer) -> dict[str, Any]:
    size = drawer.transformer.size
    return {
        "_class_name": "QwenImageTransformer2DModel",
        "_diffusers_version": LAYOUT_VERSION,
        **asdict(size),
        "out_channels": size.in_channels // 4,
        "patch_size": 2,
        "guidance_embeds": False,
    }


def _autoencoder_config(autoencoder: Autoencoder) -> dict[str, Any]:
    size = autoencoder.size
    return {
        "_class_name": "AutoencoderKLQwenImage",
        "_diffusers_version": LAYOUT_VERSION,
        **asdict(size),
        "attn_scales": [],
        "dropout": 0.0,
        "temperal_downsample": [False] * (len(size.dim_mult) - 1),
        "latents_mean": [0.0] * size.z_dim,
        "latents_std": [1.0] * size.z_dim,
    }


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    halves = {name: tensor.to(torch.float16).contiguous() for name, tensor in tensors.items()}
    save_file(halves, path, metadata={"format": "pt"})
