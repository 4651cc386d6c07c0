"""Seeded random talkers of both models in the published layout, tiny and of the published size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from sentencepiece import SentencePieceNormalizer
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec

from cantata_layers.checkpoint import PICKLE_FILE, SINGLE_FILE
from cantata_layers.random_qwen_tokenizer import ORDINARY_TOKENS, write_qwen_tokenizer
from cantata_layers.random_tensors import (
    TensorSpec,
    draw,
    linear,
    norm,
    qwen3_tensors,
    weight,
    write_json,
)

SPACE = "\u2581"
"""Stands for a space in a piece."""
CONTROL = ("<s>", "</s>", "<pad>")
USER_DEFINED = (
    "<|im_start|>",
    "<|im_end|>",
    "<|audio_start|>",
    "<|audio_end|>",
    "<|vision_pad|>",
    "<|video_pad|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|audio_pad|>",
    "<user_inst>",
    "</user_inst>",
)
"""From id 4 on, as published."""
MERGES = (
    *("▁t", "he", "in", "▁the", "er", "on", "▁us", "▁user", "ss", "▁a", "▁ass", "is", "ist"),
    *("▁assist", "an", "ant", "ou", "▁N", "▁None", "one", "re", "▁-", "世界"),
)
"""Pieces of several characters; each joins two that are pieces themselves."""
CHARACTERS = (
    SPACE,
    *(chr(code) for code in range(0x21, 0x7F)),
    *"你好世界今天气真。，！？",  # noqa: RUF001
)
VOCABULARY = 1 + len(CONTROL) + len(USER_DEFINED) + 256 + len(MERGES) + len(CHARACTERS)
"""Number of pieces."""


def write_sentencepiece(path: Path, vocabulary: int = VOCABULARY) -> None:
    """Write the model. `vocabulary`: number of pieces; unused ones follow those that there are."""
    model = ModelProto()
    for piece, kind, score in _pieces():
        model.pieces.add(piece=piece, type=kind, score=score)
    for index in range(len(model.pieces), vocabulary):
        kind = ModelProto.SentencePiece.UNUSED
        model.pieces.add(piece=f"<unused{index}>", type=kind, score=0.0)
    model.trainer_spec.model_type = TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = vocabulary
    model.trainer_spec.pad_id = 3
    model.trainer_spec.user_defined_symbols.extend(USER_DEFINED)
    normalizer = SentencePieceNormalizer(rule_name="nmt_nfkc")
    model.normalizer_spec.ParseFromString(normalizer.serialized_normalizer_spec())
    path.write_bytes(model.SerializeToString(deterministic=True))


def _pieces() -> Iterator[tuple[str, int, float]]:
    """Yield each piece with its type and score; a merge with a higher score comes first."""
    kinds = ModelProto.SentencePiece
    yield "<unk>", kinds.UNKNOWN, 0.0
    for piece in CONTROL:
        yield piece, kinds.CONTROL, 0.0
    for piece in USER_DEFINED:
        yield piece, kinds.USER_DEFINED, 0.0
    for byte in range(256):
        yield f"<0x{byte:02X}>", kinds.BYTE, 0.0
    for rank, piece in enumerate((*MERGES, *CHARACTERS)):
        yield piece, kinds.NORMAL, -float(rank)


SPECIAL_OFFSETS = {
    "<|endoftext|>": 0,
    "<|im_start|>": 1,
    "<|im_end|>": 2,
    "<|vision_pad|>": 11,
    "<|video_pad|>": 13,
    "<|audio_start|>": 26,
    "<|audio_end|>": 27,
}
"""Local's special tokens, counted from the first one, as published."""


@dataclass(frozen=True, slots=True)
class LocalShape:
    """The values that differ between Local's sizes."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    layers: int
    local_heads: int
    local_ffn: int
    codebooks: int
    codes: int
    first_special: int
    vocabulary: int

    @property
    def special_ids(self) -> dict[str, int]:
        return {token: self.first_special + offset for token, offset in SPECIAL_OFFSETS.items()}


@dataclass(frozen=True, slots=True)
class NanoShape:
    """The values that differ between Nano's sizes."""

    hidden: int
    heads: int
    ffn: int
    layers: int
    codebooks: int
    codes: int
    vocabulary: int


TINY_LOCAL = LocalShape(
    hidden=64,
    heads=4,
    kv_heads=2,
    head_dim=32,
    ffn=96,
    layers=2,
    local_heads=4,
    local_ffn=96,
    codebooks=5,
    codes=64,
    first_special=ORDINARY_TOKENS,
    vocabulary=ORDINARY_TOKENS + 40,
)
LOCAL = LocalShape(
    hidden=2560,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn=9728,
    layers=36,
    local_heads=32,
    local_ffn=9728,
    codebooks=12,
    codes=1024,
    first_special=151_643,
    vocabulary=151_936,
)
"""MOSS-TTS-Local-Transformer v1.5."""
TINY_NANO = NanoShape(
    hidden=64, heads=2, ffn=128, layers=2, codebooks=4, codes=64, vocabulary=VOCABULARY
)
NANO = NanoShape(
    hidden=768, heads=12, ffn=3072, layers=12, codebooks=16, codes=1024, vocabulary=16_384
)
"""MOSS-TTS-Nano."""
REDUCED_NANO = replace(NANO, hidden=256, heads=4, ffn=1024, layers=3)
"""All codebooks, for several streams at a time on a few CPU cores."""


def local_config(shape: LocalShape) -> dict[str, Any]:
    ids = shape.special_ids
    qwen3 = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.ffn,
        "layer_types": ["full_attention"] * shape.layers,
        "max_position_embeddings": 40_960,
        "max_window_layers": shape.layers,
        "model_type": "qwen3",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1_000_000,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": shape.vocabulary,
    }
    gpt2 = _gpt2(shape.hidden, shape.local_heads, shape.local_ffn, shape.vocabulary) | {
        "activation_function": "silu",
        "layer_norm_epsilon": 1e-06,
        "n_ctx": shape.codebooks + 1,
        "n_layer": 1,
        "n_positions": shape.codebooks + 1,
        "pad_token_id": ids["<|endoftext|>"],
        "rope_base": 1_000_000.0,
    }
    return _audio(shape.codebooks, shape.codes) | {
        "architectures": ["MossTTSLocalModel"],
        "attn_implementation": "flash_attention_2",
        "audio_assistant_gen_slot_token_id": ids["<|video_pad|>"],
        "audio_assistant_slot_token_id": ids["<|video_pad|>"],
        "audio_end_token_id": ids["<|audio_end|>"],
        "audio_pad_code": shape.codes,
        "audio_start_token_id": ids["<|audio_start|>"],
        "audio_tokenizer_name_or_path": "OpenMOSS-Team/MOSS-Audio-Tokenizer-v2",
        "audio_user_slot_token_id": ids["<|vision_pad|>"],
        "auto_map": {
            "AutoConfig": "configuration_moss_tts.MossTTSLocalConfig",
            "AutoModel": "modeling_moss_tts.MossTTSLocalModel",
            "AutoProcessor": "processing_moss_tts.MossTTSLocalProcessor",
        },
        "gpt2_config": gpt2,
        "hidden_size": shape.hidden,
        "im_end_token_id": ids["<|im_end|>"],
        "im_start_token_id": ids["<|im_start|>"],
        "initializer_range": 0.02,
        "language_config": qwen3,
        "local_hidden_size": shape.hidden,
        "local_text_head_mode": "binary",
        "local_transformer_attn_implementation": "flash_attention_2",
        "local_transformer_layers": 1,
        "model_type": "moss_tts_local",
        "pad_token_id": ids["<|endoftext|>"],
        "qwen3_config": qwen3,
        "sampling_rate": 48_000,
        "tie_word_embeddings": True,
        "vocab_size": shape.vocabulary,
    }


def nano_config(shape: NanoShape) -> dict[str, Any]:
    gpt2 = _gpt2(shape.hidden, shape.heads, shape.ffn, shape.vocabulary) | {
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-05,
        "n_ctx": 32_768,
        "n_layer": shape.layers,
        "n_positions": 32_768,
        "pad_token_id": 3,
        "rope_base": 10_000.0,
    }
    return _audio(shape.codebooks, shape.codes) | {
        "architectures": ["MossTTSNanoForCausalLM"],
        "attn_implementation": "flash_attention_2",
        "audio_assistant_slot_token_id": 9,
        "audio_end_token_id": 7,
        "audio_start_token_id": 6,
        "audio_tokenizer_pretrained_name_or_path": "OpenMOSS-Team/MOSS-Audio-Tokenizer-Nano",
        "audio_tokenizer_sample_rate": 48_000,
        "audio_tokenizer_type": "moss-audio-tokenizer-nano",
        "audio_user_slot_token_id": 8,
        "auto_map": {
            "AutoConfig": "configuration_moss_tts_nano.MossTTSNanoConfig",
            "AutoModel": "modeling_moss_tts_nano.MossTTSNanoForCausalLM",
            "AutoModelForCausalLM": "modeling_moss_tts_nano.MossTTSNanoForCausalLM",
        },
        "gpt2_config": gpt2,
        "hidden_size": shape.hidden,
        "im_end_token_id": 5,
        "im_start_token_id": 4,
        "initializer_range": 0.02,
        "local_transformer_attn_implementation": "flash_attention_2",
        "local_transformer_layers": 1,
        "max_position_embeddings": 32_768,
        "model_architecture": "global_local_transformer",
        "model_type": "moss_tts_nano",
        "pad_token_id": 3,
        "tokenizer_class": "MossTTSNanoSentencePieceTokenizer",
        "tokenizer_use_fast": False,
        "vocab_size": shape.vocabulary,
    }


def _gpt2(hidden: int, heads: int, ffn: int, vocabulary: int) -> dict[str, Any]:
    return {
        "add_cross_attention": False,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "initializer_range": 0.02,
        "model_type": "gpt2",
        "n_embd": hidden,
        "n_head": heads,
        "n_inner": ffn,
        "position_embedding_type": "rope",
        "reorder_and_upcast_attn": False,
        "resid_pdrop": 0.0,
        "scale_attn_by_inverse_layer_idx": False,
        "scale_attn_weights": True,
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": vocabulary,
    }


def _audio(codebooks: int, codes: int) -> dict[str, Any]:
    return {
        "audio_codebook_sizes": [codes] * codebooks,
        "audio_pad_token_id": codes,
        "audio_vocab_size": codes,
        "n_vq": codebooks,
    }


Config = Mapping[str, Any]

STOP_HEAD = "local_text_lm_head.weight"
TEXT_TABLE = "transformer.wte.weight"
"""Nano's; two of its rows are the stop head."""
PEAKY = 2.0
"""Gain of queries and keys. Without it attention is flat and all prompts sound alike."""
LAST_BIAS = 0.3
"""Mean of the bias of a last norm: rows of a head with another mean score higher or lower."""


def _norm(name: str, size: int, bias: float = 0.0) -> Iterator[TensorSpec]:
    yield norm(name, size)
    yield TensorSpec(f"{name}.bias", (size,), 0.2, bias)


def _gpt2_stack(name: str, config: Config, layers: int) -> Iterator[TensorSpec]:
    size, inner = config["n_embd"], config["n_inner"]
    for index in range(layers):
        block = f"{name}.h.{index}"
        yield from _norm(f"{block}.ln_1", size)
        yield from linear(f"{block}.attn.c_attn", size, 3 * size, gain=PEAKY)
        yield from linear(f"{block}.attn.c_proj", size, size)
        yield from _norm(f"{block}.ln_2", size)
        yield from linear(f"{block}.mlp.fc_in", size, inner, gain=2.0)
        yield from linear(f"{block}.mlp.fc_out", inner, size)
    yield from _norm(f"{name}.ln_f", size, bias=LAST_BIAS)


def _frames(config: Config) -> Iterator[TensorSpec]:
    """The local transformer and the tables of codes, which also are heads."""
    gpt2 = config["gpt2_config"]
    yield from _gpt2_stack("local_transformer", gpt2, config["local_transformer_layers"])
    for book, codes in enumerate(config["audio_codebook_sizes"]):
        yield weight(f"audio_embeddings.{book}", codes, gpt2["n_embd"], gain=4.0)


def local_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of Local's checkpoint for its config.json."""
    qwen3 = config["qwen3_config"]
    size = qwen3["hidden_size"]
    yield TensorSpec("transformer.embed_tokens.weight", (qwen3["vocab_size"], size), 1.0)
    yield from qwen3_tensors("transformer", qwen3)
    yield from _frames(config)
    yield TensorSpec(STOP_HEAD, (2, size), 0.3)


def nano_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of Nano's checkpoint for its config.json, without tied heads."""
    gpt2 = config["gpt2_config"]
    yield TensorSpec(TEXT_TABLE, (gpt2["vocab_size"], gpt2["n_embd"]), 0.3)
    yield from _gpt2_stack("transformer", gpt2, gpt2["n_layer"])
    yield from _frames(config)


LEANING = 0.16
"""Mean of the row that scores going on; stopping's is its negative, so that it is the rarer one."""
Tensors = dict[str, torch.Tensor]


def write_local(
    folder: Path, shape: LocalShape, seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint of MOSS-TTS-Local into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    config = local_config(shape)
    tensors = _draw(local_tensors(config), seed)
    _lean(tensors[STOP_HEAD], 0, 1)
    write_json(folder / "config.json", config | {"dtype": _name(dtype)})
    write_qwen_tokenizer(folder, shape.special_ids)
    path = folder / SINGLE_FILE
    save_file(_cast(tensors, dtype), path, metadata={"format": "pt"})
    path.chmod(0o644)
    return folder


def write_nano(
    folder: Path, shape: NanoShape, seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint of MOSS-TTS-Nano into `folder` and return it; it has its tied heads."""
    folder.mkdir(parents=True, exist_ok=True)
    config = nano_config(shape)
    tensors = _draw(nano_tensors(config), seed)
    slot, end = config["audio_assistant_slot_token_id"], config["audio_end_token_id"]
    _lean(tensors[TEXT_TABLE], slot, end)
    tensors = _cast(tensors, dtype)
    tensors["text_lm_head.weight"] = tensors[TEXT_TABLE]
    for book in range(config["n_vq"]):
        tensors[f"audio_lm_heads.{book}.weight"] = tensors[f"audio_embeddings.{book}.weight"]
    write_json(folder / "config.json", config | {"dtype": _name(dtype)})
    write_json(folder / "tokenizer_config.json", _nano_tokenizer_config())
    write_sentencepiece(folder / "tokenizer.model", shape.vocabulary)
    torch.save(tensors, folder / PICKLE_FILE)
    return folder


def _draw(specs: Iterable[TensorSpec], seed: int) -> Tensors:
    return {spec.name: torch.from_numpy(draw(spec, seed)) for spec in specs}


def _lean(table: torch.Tensor, go_on: int, stop: int) -> None:
    table[go_on] += LEANING
    table[stop] -= LEANING


def _cast(tensors: Mapping[str, torch.Tensor], dtype: torch.dtype) -> Tensors:
    return {name: tensor.to(dtype) for name, tensor in tensors.items()}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _nano_tokenizer_config() -> dict[str, Any]:
    added = {
        str(index): {
            "content": token,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for index, token in enumerate(("<unk>", *CONTROL))
    }
    return {
        "added_tokens_decoder": added,
        "bos_token": "<s>",
        "clean_up_tokenization_spaces": False,
        "eos_token": "</s>",
        "model_max_length": 16_384,
        "pad_token": "<pad>",
        "tokenizer_class": "MossTTSNanoSentencePieceTokenizer",
        "unk_token": "<unk>",
    }
