"""Tiny text models of random weights, in the files that transformers writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
    SmolLM3Config,
)

_MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
_SPECIAL = ("<s>", "<|im_start|>", "<|im_end|>")
_BYTES = 256
VOCABULARY = _BYTES + len(_SPECIAL) + len(_MARKS) + 2
"""The last two tokens have no text."""
END = _BYTES + _SPECIAL.index("<|im_end|>")
TEMPLATE = """{%- if messages[-1]['role'] == 'assistant' -%}
{{ raise_exception('the last message is the assistant') }}
{%- endif -%}
{%- if tools -%}
<|im_start|>system
Answer, or write <tool_call>{"name": ..., "arguments": {...}}</tool_call>.
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}<|im_end|>
{% endif -%}
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{{ message['content'] }}
{%- for call in message.get('tool_calls') or [] -%}
<tool_call>{{ call['function'] | tojson }}</tool_call>
{%- endfor -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""
_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 1024,
    "eos_token_id": END,
    "bos_token_id": _BYTES,
    "pad_token_id": END,
    "initializer_range": 0.2,
}
_CONFIGS: dict[str, Callable[[], Any]] = {
    "llama": lambda: LlamaConfig(**_SIZES),
    "qwen3": lambda: Qwen3Config(**_SIZES, tie_word_embeddings=True),
    "gemma3": lambda: Gemma3TextConfig(
        **_SIZES,
        sliding_window=32,
        query_pre_attn_scalar=32,
        layer_types=["sliding_attention", "full_attention"],
    ),
    # All layers look back as far, which vLLM says in another place.
    "mistral": lambda: MistralConfig(**_SIZES, sliding_window=32),
    # vLLM takes its network from transformers.
    "smollm3": lambda: SmolLM3Config(**_SIZES),
}
KINDS = tuple(_CONFIGS)


def write_checkpoint(folder: Path, kind: str, seed: int = 1) -> Path:
    """Write a model and its tokenizer.

    Args:
        folder: exists.
        kind: one of `KINDS`.
    """
    torch.manual_seed(seed)
    make: Any = AutoModelForCausalLM.from_config
    model: Any = make(_CONFIGS[kind](), dtype=torch.float32)
    model.generation_config.do_sample = False
    model.save_pretrained(folder)
    _make_tokenizer().save_pretrained(folder)
    return folder


def _make_tokenizer() -> Any:
    """Of bytes, with the special tokens and marks behind them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE(vocab=dict(zip(alphabet, range(_BYTES), strict=True)), merges=[]))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    words.decoder = decoders.ByteLevel()
    words.add_special_tokens([*_SPECIAL])
    words.add_tokens([*_MARKS])
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(
        tokenizer_object=words, bos_token="<s>", eos_token="<|im_end|>", pad_token="<|im_end|>"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def write_tiny(folder: Path) -> None:
    write_checkpoint(folder, "llama")
