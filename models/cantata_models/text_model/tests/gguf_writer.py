"""Tiny checkpoints of transformers as GGUF files, by llama.cpp's conventions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    Qwen2Config,
    Qwen3Config,
)

HEADS, KV_HEADS, LAYERS, WIDTH, WINDOW = 4, 2, 7, 64, 16
TEXT = (
    "The tide comes in at noon, and the boats go out again in the evening. It's 1984, we'll see: "
    "don't you think they've said so?\n\nAn old lighthouse stands over the harbour \u2014 "
    "caf\u00e9 na\u00efve \u65e5\u672c\u8a9e."
)
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
USER_DEFINED = "<tool_call>"
FILLER = "[PAD1]"
_SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 96,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
    "rms_norm_eps": 1e-6,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
}
_PARTS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
}
_GEMMA_PARTS = {
    **_PARTS,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def make_words() -> Tokenizer:
    """A byte-level tokenizer with merges, as smollm cuts texts."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        special_tokens=[*SPECIAL],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    words.train_from_iterator([TEXT], trainer)
    return words


def make_model(kind: str, vocabulary: int) -> Any:
    """A network of random weights, norms and biases too."""
    sizes = {**_SIZES, "vocab_size": vocabulary}
    configs: dict[str, Callable[[], Any]] = {
        "llama": lambda: LlamaConfig(**sizes, rope_parameters=_rotation(10_000.0)),
        "qwen2": lambda: Qwen2Config(**sizes, rope_parameters=_rotation(1e6)),
        "qwen3": lambda: Qwen3Config(
            **sizes, head_dim=32, tie_word_embeddings=True, rope_parameters=_rotation(1e6)
        ),
        "gemma3": lambda: Gemma3TextConfig(
            **sizes,
            head_dim=32,
            query_pre_attn_scalar=32,
            sliding_window=WINDOW,
            layer_types=[*["sliding_attention"] * 5, "full_attention", "sliding_attention"],
            rope_parameters={
                "full_attention": _rotation(1e6),
                "sliding_attention": _rotation(10_000.0),
            },
        ),
    }
    torch.manual_seed(3)
    make: Any = AutoModelForCausalLM.from_config
    model: Any = make(configs[kind](), dtype=torch.float32)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("norm.weight", ".bias")):
                weight.add_(torch.randn_like(weight) * 0.1)
    return model


def _rotation(theta: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": theta}


def write_gguf(
    path: Path,
    kind: str,
    model: Any,
    words: Tokenizer,
    *,
    quantization: GGMLQuantizationType = GGMLQuantizationType.F32,
    template: str | None = TEMPLATE,
    pre: str = "gpt-2",
    architecture: str | None = None,
    drop: str = "",
) -> Path:
    """Write a file.

    Args:
        kind: of `make_model`.
        quantization: of matrices.
        template: of conversations; None: there is none.
        pre: llama.cpp's name of how texts are cut.
        architecture: that the file names; None: `kind`.
        drop: a tensor that is left out.
    """
    writer = GGUFWriter(path, architecture or kind)
    _add_sizes(writer, model.config, kind)
    _add_words(writer, words, pre)
    if template is not None:
        writer.add_chat_template(template)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        place, array = _lay_out(name, tensor, kind)
        if place == drop:
            continue
        if array.ndim == 1 or quantization == GGMLQuantizationType.F32:
            writer.add_tensor(place, array)
        else:
            writer.add_tensor(place, quantize(array, quantization), raw_dtype=quantization)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_sizes(writer: GGUFWriter, config: Any, kind: str) -> None:
    rotation = config.rope_parameters
    theta = rotation["full_attention"] if kind == "gemma3" else rotation
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(theta["rope_theta"])
    if kind in ("qwen3", "gemma3"):
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if kind == "gemma3":
        writer.add_sliding_window(config.sliding_window)


def _add_words(writer: GGUFWriter, words: Tokenizer, pre: str) -> None:
    merges = [" ".join(pair) for pair in read_merges(words)]
    tokens = sorted(words.get_vocab(), key=words.get_vocab().__getitem__)
    types = [TokenType.CONTROL if token in SPECIAL else TokenType.NORMAL for token in tokens]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([*tokens, USER_DEFINED, FILLER])
    writer.add_token_types([*types, TokenType.USER_DEFINED, TokenType.UNUSED])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)


def read_merges(words: Tokenizer) -> list[tuple[str, str]]:
    """In their order."""
    return [tuple(pair) for pair in json.loads(words.to_str())["model"]["merges"]]


def _lay_out(name: str, tensor: torch.Tensor, kind: str) -> tuple[str, Any]:
    """The tensor's name and values in the file."""
    part, _, ending = name.rpartition(".")
    parts = _GEMMA_PARTS if kind == "gemma3" else _PARTS
    if part.startswith("model.layers."):
        _, _, layer, inner = part.split(".", 3)
        place = f"blk.{layer}.{parts[inner]}.{ending}"
    else:
        inner, place = part, f"{parts[part]}.{ending}"
    if kind == "llama" and inner in ("self_attn.q_proj", "self_attn.k_proj"):
        heads = HEADS if inner == "self_attn.q_proj" else KV_HEADS
        halves = tensor.reshape(heads, 2, -1, *tensor.shape[1:])
        tensor = halves.swapaxes(1, 2).reshape(tensor.shape)
    if kind == "gemma3" and name.endswith("norm.weight"):
        tensor = tensor + 1
    return place, tensor.contiguous().numpy()
