"""The publisher's code, on a CPU and in float32, with stand-ins for what it cannot have there.

It needs an environment of its own: transformers 4.49, torch, einops, tqdm, and the
Pillow that is installed here, since its versions resize differently by rounding. Stand-ins: of
flash-attn (torch's attention, sequence by sequence), of torchvision (Pillow's resizing, which is
what torchvision calls), of cv2 (nothing that is used needs it). The code casts to bfloat16 by
name; here that name means float32.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from cantata_models.bagel.random_checkpoint import LATENT_CHANNELS, BagelShape
from cantata_models.bagel.tests.parity.scenarios import SIZES


def load_inferencer(clone: Path, checkpoint: Path, shape: BagelShape) -> Any:
    """The publisher's inferencer over a checkpoint, set up as its app does it."""
    sys.path.insert(0, str(clone))
    # Before the stand-ins: transformers looks for what is installed.
    importlib.import_module("transformers.modeling_utils")
    _stand_in()
    from data.data_utils import add_special_tokens  # type: ignore[import-not-found]
    from data.transforms import ImageTransform  # type: ignore[import-not-found]
    from inferencer import InterleaveInferencer  # type: ignore[import-not-found]
    from modeling.qwen2 import Qwen2Tokenizer  # type: ignore[import-not-found]

    vae, vae_config = _autoencoder(checkpoint, shape)
    model = _model(checkpoint, vae_config)
    tokenizer = Qwen2Tokenizer.from_pretrained(str(checkpoint))
    tokenizer, marks, _ = add_special_tokens(tokenizer)
    # Only now: libraries read the name when they are imported.
    torch.bfloat16 = torch.float32
    torch.autocast = lambda *_, **__: contextlib.nullcontext()  # type: ignore[assignment,misc]
    kept, seen = SIZES.kept, SIZES.seen
    return InterleaveInferencer(
        model=model,
        vae_model=vae,
        tokenizer=tokenizer,
        vae_transform=ImageTransform(kept.longest, kept.shortest, kept.unit),
        vit_transform=ImageTransform(seen.longest, seen.shortest, seen.unit),
        new_token_ids=marks,
    )


def _model(checkpoint: Path, vae_config: Any) -> Any:
    from modeling.bagel import (  # type: ignore[import-not-found]
        Bagel,
        BagelConfig,
        Qwen2Config,
        Qwen2ForCausalLM,
        SiglipVisionConfig,
        SiglipVisionModel,
    )
    from safetensors.torch import load_file

    language = Qwen2Config.from_json_file(str(checkpoint / "llm_config.json"))
    language.qk_norm, language.tie_word_embeddings = True, False
    language.layer_module = "Qwen2MoTDecoderLayer"
    vision = SiglipVisionConfig.from_json_file(str(checkpoint / "vit_config.json"))
    vision.rope = False
    vision.num_hidden_layers -= 1
    config = BagelConfig(
        visual_gen=True,
        visual_und=True,
        llm_config=language,
        vit_config=vision,
        vae_config=vae_config,
        vit_max_num_patch_per_side=70,
        connector_act="gelu_pytorch_tanh",
        latent_patch_size=2,
        max_latent_size=64,
    )
    eyes = SiglipVisionModel(vision)
    model = Bagel(Qwen2ForCausalLM(language), eyes, config)
    eyes.vision_model.embeddings.convert_conv2d_to_linear(vision)
    model.load_state_dict(load_file(checkpoint / "ema.safetensors"), strict=True)
    return model.eval().float()


def _autoencoder(checkpoint: Path, shape: BagelShape) -> tuple[Any, Any]:
    from modeling.autoencoder import (  # type: ignore[import-not-found]
        AutoEncoder,
        AutoEncoderParams,
    )
    from safetensors.torch import load_file

    first = shape.vae_widths[0]
    params = AutoEncoderParams(
        resolution=256,
        in_channels=3,
        downsample=8,
        ch=first,
        out_ch=3,
        ch_mult=[width // first for width in shape.vae_widths],
        num_res_blocks=shape.vae_blocks,
        z_channels=LATENT_CHANNELS,
        scale_factor=0.3611,
        shift_factor=0.1159,
    )
    vae = AutoEncoder(params)
    vae.load_state_dict(load_file(checkpoint / "ae.safetensors"), strict=True)
    return vae.eval(), params


def _stand_in() -> None:
    flash, cv2 = types.ModuleType("flash_attn"), types.ModuleType("cv2")
    flash.flash_attn_varlen_func = _attended  # type: ignore[attr-defined]
    vision = types.ModuleType("torchvision")
    transforms = types.ModuleType("torchvision.transforms")
    kernels = types.ModuleType("torchvision.transforms.functional")
    kernels.resize = _resized  # type: ignore[attr-defined]
    transforms.functional = kernels  # type: ignore[attr-defined]
    transforms.InterpolationMode = types.SimpleNamespace(  # type: ignore[attr-defined]
        BICUBIC=Image.Resampling.BICUBIC
    )
    transforms.ToTensor = lambda: _to_tensor  # type: ignore[attr-defined]
    transforms.Normalize = _Normalize  # type: ignore[attr-defined]
    vision.transforms = transforms  # type: ignore[attr-defined]
    for module in (flash, cv2, vision, transforms, kernels):
        # transformers asks for it.
        module.__spec__ = ModuleSpec(module.__name__, None)
        sys.modules[module.__name__] = module


def _attended(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    causal: bool = False,
) -> torch.Tensor:
    """flash-attn's: [tokens, heads, columns] of sequences one after the other; a causal mask is
    aligned with the last key."""
    made = []
    bounds = zip(
        cu_seqlens_q[:-1], cu_seqlens_q[1:], cu_seqlens_k[:-1], cu_seqlens_k[1:], strict=True
    )
    for first, last, first_key, last_key in bounds:
        query, key, value = q[first:last], k[first_key:last_key], v[first_key:last_key]
        groups = query.shape[1] // key.shape[1]
        scores = (
            torch.einsum("qhc,khc->hqk", query, key.repeat_interleave(groups, 1))
            / query.shape[-1] ** 0.5
        )
        if causal:
            rows = torch.arange(len(query))[:, None] + len(key) - len(query)
            scores = scores.masked_fill(torch.arange(len(key)) > rows, float("-inf"))
        weights = functional.softmax(scores, dim=-1)
        made.append(torch.einsum("hqk,khc->qhc", weights, value.repeat_interleave(groups, 1)))
    return torch.cat(made)


def _resized(image: Image.Image, size: tuple[int, int], interpolation: Any, **_: Any) -> Any:
    return image.resize(size[::-1], interpolation)


def _to_tensor(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float() / 255


class _Normalize:
    def __init__(self, mean: list[float], std: list[float], inplace: bool) -> None:
        self._mean, self._std = (torch.tensor(v)[:, None, None] for v in (mean, std))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self._mean) / self._std
