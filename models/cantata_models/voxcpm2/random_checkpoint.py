"""Random checkpoints in the published format, tiny or of the published size."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import AddedToken, Tokenizer, normalizers, processors
from tokenizers.models import BPE

from cantata_layers.random_rules import Rules, Shape, lengths, specify, values
from cantata_layers.random_tensors import (
    TensorSpec,
    linear,
    norm,
    weight,
    write_json,
    write_tensors,
)
from cantata_layers.weights import TakenShapes
from cantata_models.voxcpm2.codec import SoundDecoder
from cantata_models.voxcpm2.config import VoxCpm2CodecConfig, load_codec_config
from cantata_models.voxcpm2.encoder import SoundEncoder

FACTORS = 16
"""Of the tiny heads."""


def _config(
    sizes: dict[str, Any], lm: dict[str, Any], codec: dict[str, Any], head_dim: int
) -> dict[str, Any]:
    local = {"kv_channels": head_dim}
    return {
        "architecture": "voxcpm2",
        "lm_config": {
            "bos_token_id": 1,
            "eos_token_id": 2,
            "kv_channels": head_dim,
            "rms_norm_eps": 1e-05,
            "rope_theta": 10000.0,
            "use_mup": False,
            "scale_emb": 12,
            "dim_model_base": 256,
            "scale_depth": 1.4,
            **lm,
        },
        "patch_size": 4,
        "residual_lm_no_rope": True,
        "scalar_quantization_scale": 9,
        "max_length": 8192,
        "device": "cpu",
        "dtype": "float32",
        **sizes,
        "encoder_config": {**local, **sizes["encoder_config"]},
        "dit_config": {**local, **sizes["dit_config"], "cfm_config": {}},
        "audio_vae_config": {
            "encoder_rates": [2, 5, 8, 8],
            "decoder_rates": [8, 6, 5, 2, 2, 2],
            "depthwise": True,
            "sample_rate": 16000,
            "out_sample_rate": 48000,
            "use_noise_block": False,
            "sr_bin_boundaries": [20000, 30000, 40000],
            "cond_type": "scale_bias",
            "cond_dim": 128,
            "cond_out_layer": False,
            "latent_dim": sizes["feat_dim"],
            **codec,
        },
    }


def _factors(low: float, high: float) -> list[float]:
    return [low + (high - low) * index / (FACTORS - 1) for index in range(FACTORS)]


TINY = _config(
    {
        "feat_dim": 16,
        "scalar_quantization_latent_dim": 16,
        "residual_lm_num_layers": 1,
        "encoder_config": {"hidden_dim": 48, "ffn_dim": 96, "num_heads": 2, "num_layers": 1},
        "dit_config": {"hidden_dim": 64, "ffn_dim": 96, "num_heads": 2, "num_layers": 2},
    },
    {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "vocab_size": 400,
        "max_position_embeddings": 2048,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": _factors(1.0, 1.6),
            "long_factor": _factors(1.0, 5.0),
            "original_max_position_embeddings": 2048,
        },
    },
    {"encoder_dim": 8, "decoder_dim": 128},
    head_dim=32,
)
"""As published in kind: short factors, no positions in the residual model, scales by rate."""

TINY_STRETCHED = {
    **TINY,
    "residual_lm_no_rope": False,
    "residual_lm_num_layers": 2,
    "lm_config": {
        **TINY["lm_config"],
        "max_position_embeddings": 4096,
        "rope_scaling": {
            **TINY["lm_config"]["rope_scaling"],
            "original_max_position_embeddings": 1024,
        },
    },
    "audio_vae_config": {**TINY["audio_vae_config"], "sr_bin_boundaries": None},
}
"""What other checkpoints may be: stretched positions in both models, no scales by rate."""

PUBLISHED = _config(
    {
        "feat_dim": 64,
        "scalar_quantization_latent_dim": 512,
        "residual_lm_num_layers": 8,
        "encoder_config": {"hidden_dim": 1024, "ffn_dim": 4096, "num_heads": 16, "num_layers": 12},
        "dit_config": {"hidden_dim": 1024, "ffn_dim": 4096, "num_heads": 16, "num_layers": 12},
        "dtype": "bfloat16",
    },
    {
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "vocab_size": 73448,
        "max_position_embeddings": 32768,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0] * 64,
            "long_factor": [1.0] * 64,
            "original_max_position_embeddings": 32768,
        },
    },
    {"encoder_dim": 128, "decoder_dim": 2048},
    head_dim=128,
)
"""The size of the published checkpoint (its factors differ)."""
REDUCED = _config(
    {
        "feat_dim": 64,
        "scalar_quantization_latent_dim": 256,
        "residual_lm_num_layers": 2,
        "encoder_config": {"hidden_dim": 256, "ffn_dim": 1024, "num_heads": 4, "num_layers": 4},
        "dit_config": {"hidden_dim": 256, "ffn_dim": 1024, "num_heads": 4, "num_layers": 4},
    },
    {
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 400,
        "max_position_embeddings": 8192,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0] * 32,
            "long_factor": [1.0] * 32,
            "original_max_position_embeddings": 8192,
        },
    },
    {"encoder_dim": 32, "decoder_dim": 512},
    head_dim=64,
)
"""A quarter of the published widths and layers, for a few CPU cores."""
SIZES = {"tiny": TINY, "reduced": REDUCED, "2b": PUBLISHED}


SPECIAL = ("<unk>", "<s>", "</s>")
FOR_SOUND = ("<|audio_start|>", "<|audio_end|>", "<|audio_prompt_start|>", "<|audio_prompt_end|>")
FIRST_FOR_SOUND = 101
PRINTABLE = [chr(code) for code in range(0x21, 0x7F)]
CHINESE = "你好世界早上"
MERGES = (
    *(("▁", "t"), ("t", "h"), ("h", "e"), ("e", "r"), ("i", "n"), ("o", "n"), ("▁t", "he")),
    *(("你", "好"), ("世", "界"), ("▁", "你好"), ("▁", "早")),
)
"""Some words; Chinese ones are to be split again."""


def write_tokenizer(folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json."""
    model = BPE(
        _vocabulary(), list(MERGES), unk_token=SPECIAL[0], fuse_unk=True, byte_fallback=True
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    special = [*SPECIAL, *FOR_SOUND]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    # A beginning that the model must not get.
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {"unk_token": SPECIAL[0], "bos_token": SPECIAL[1], "eos_token": SPECIAL[2]}
    write_json(folder / "special_tokens_map.json", named)
    write_json(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": True,
            "add_eos_token": False,
            "clean_up_tokenization_spaces": False,
            "legacy": True,
            "model_max_length": 10**9,
            "tokenizer_class": "LlamaTokenizer",
            **named,
        },
    )


def _vocabulary() -> dict[str, int]:
    tokens = [*SPECIAL, "▁", *PRINTABLE]
    tokens += [f"<|unused_{index}|>" for index in range(len(tokens), FIRST_FOR_SOUND)]
    tokens += [*FOR_SOUND, *CHINESE, *(left + right for left, right in MERGES)]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    return {token: index for index, token in enumerate(tokens)}


META = torch.device("meta")


def codec_tensors(folder: Path) -> Iterator[TensorSpec]:
    """Yield every tensor of audiovae.safetensors; `folder` has the config.json."""
    taken = TakenShapes()
    SoundEncoder(folder, META, taken.read)
    SoundDecoder(folder, META, taken.read)
    yield from specify(dict(_published(taken.shapes)), _rules(load_codec_config(folder)))


def _published(shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape]]:
    """Yield names and shapes as published: a convolution's directions apart from their lengths, and
    the deviations of latents, which nobody reads, beside their means."""
    for taken, shape in shapes.items():
        for name in dict.fromkeys((taken, taken.replace("fc_mu", "fc_logvar"))):
            if name.endswith(".weight") and len(shape) == 3:
                yield f"{name}_v", shape
                yield f"{name}_g", (shape[0], 1, 1)
            else:
                yield name, shape


def _rules(config: VoxCpm2CodecConfig) -> Rules:
    last = len(config.decoder_rates) + 3
    return {
        r"\.alpha$|scale_embed\.weight$": values(0.2, 1.0),
        r"bias_embed\.weight$": values(0.2),
        r"weight_v$": values(1.0),
        # Recordings are far from -1..1 most of the time.
        r"^encoder\.block\.0\.weight_g$": lengths(4.0),
        # What a unit adds.
        r"block\.\d+\.block\.3\.weight_g$": lengths(0.3),
        # Sound that is loud and seldom clips.
        rf"^decoder\.model\.{last}\.weight_g$": lengths(0.02),
        # Of each input, an output gets two taps; there are half as many outputs as inputs.
        **{
            rf"^decoder\.model\.{layer}\.block\.1\.weight_g$": lengths(math.sqrt(rate / 2))
            for layer, rate in enumerate(config.decoder_rates, start=2)
        },
        r"weight_g$": lengths(1.0),
    }


Config = dict[str, Any]
PEAK = 1.7
"""Gain of queries and keys: attention that tells positions apart."""


def talker_tensors(config: Config) -> Iterator[TensorSpec]:
    """Return the specifications of the tensors of model.safetensors."""
    lm, encoder, dit = config["lm_config"], config["encoder_config"], config["dit_config"]
    hidden, latent = lm["hidden_size"], config["feat_dim"]
    yield TensorSpec("base_lm.embed_tokens.weight", (lm["vocab_size"], hidden), 1.0)
    for name, layers in (
        ("base_lm", lm["num_hidden_layers"]),
        ("residual_lm", config["residual_lm_num_layers"]),
    ):
        heads = lm["num_attention_heads"]
        yield from _stack(name, config, hidden, lm["intermediate_size"], layers, heads)
    size = encoder["hidden_dim"]
    yield TensorSpec("feat_encoder.special_token", (1, 1, 1, size), 1.0)
    yield from linear("feat_encoder.in_proj", latent, size)
    yield from _local("feat_encoder.encoder", config, encoder)
    yield from _solver("feat_decoder.estimator", config, dit)
    inner = config["scalar_quantization_latent_dim"]
    yield from linear("fsq_layer.in_proj", hidden, inner)
    yield from linear("fsq_layer.out_proj", inner, hidden, gain=2.0)
    yield from linear("enc_to_lm_proj", size, hidden)
    yield from linear("lm_to_dit_proj", hidden, dit["hidden_dim"])
    yield from linear("res_to_dit_proj", hidden, dit["hidden_dim"])
    yield from linear("fusion_concat_proj", 2 * hidden, hidden)
    yield from linear("stop_proj", hidden, hidden)
    yield weight("stop_head", 2, hidden)


def _solver(name: str, config: Config, dit: Config) -> Iterator[TensorSpec]:
    size, latent = dit["hidden_dim"], config["feat_dim"]
    yield from linear(f"{name}.in_proj", latent, size)
    yield from linear(f"{name}.cond_proj", latent, size)
    yield from linear(f"{name}.out_proj", size, latent)
    for embedding in ("time_mlp", "delta_time_mlp"):
        yield from linear(f"{name}.{embedding}.linear_1", size, size)
        yield from linear(f"{name}.{embedding}.linear_2", size, size)
    yield from _local(f"{name}.decoder", config, dit)


def _local(name: str, config: Config, local: Config) -> Iterator[TensorSpec]:
    layers, heads = local["num_layers"], local["num_heads"]
    yield from _stack(name, config, local["hidden_dim"], local["ffn_dim"], layers, heads)


def _stack(
    name: str, config: Config, size: int, inner: int, layers: int, heads: int
) -> Iterator[TensorSpec]:
    lm = config["lm_config"]
    queries, keys = heads * lm["kv_channels"], lm["num_key_value_heads"] * lm["kv_channels"]
    for index in range(layers):
        layer = f"{name}.layers.{index}"
        yield norm(f"{layer}.input_layernorm", size)
        yield weight(f"{layer}.self_attn.q_proj", queries, size, gain=PEAK)
        yield weight(f"{layer}.self_attn.k_proj", keys, size, gain=PEAK)
        yield weight(f"{layer}.self_attn.v_proj", keys, size)
        yield weight(f"{layer}.self_attn.o_proj", size, queries)
        yield norm(f"{layer}.post_attention_layernorm", size)
        yield weight(f"{layer}.mlp.gate_proj", inner, size)
        yield weight(f"{layer}.mlp.up_proj", inner, size)
        yield weight(f"{layer}.mlp.down_proj", size, inner)
    yield norm(f"{name}.norm", size)


TALKER_FILE, CODEC_FILE = "model.safetensors", "audiovae.safetensors"


def write_checkpoint(
    folder: Path, config: dict[str, Any], seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint of one of `configs` into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_tokenizer(folder)
    write_tensors(folder / TALKER_FILE, talker_tensors(config), seed, dtype)
    # The published autoencoder is float32, whatever the talker's dtype.
    write_tensors(folder / CODEC_FILE, codec_tensors(folder), seed, torch.float32)
    return folder


def use_pickles(folder: Path) -> Path:
    """Turn a checkpoint's files of weights into the older format, and return the folder."""
    for name, pickled in ((TALKER_FILE, "pytorch_model.bin"), (CODEC_FILE, "audiovae.pth")):
        torch.save({"state_dict": load_file(folder / name)}, folder / pickled)
        (folder / name).unlink()
    return folder


def write_tiny(folder: Path) -> None:
    write_checkpoint(folder, TINY, seed=3)


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.voxcpm2.random_checkpoint",
        description="Write a checkpoint with random weights (2b: 4.9 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="2b")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write_checkpoint(arguments.folder, SIZES[arguments.size], arguments.seed, torch.bfloat16)
    print(arguments.folder)


if __name__ == "__main__":
    main()
