"""Checkpoints of seeded random weights, as the publisher's and as transformers writes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, Qwen3ASRForConditionalGeneration

from cantata_layers.random_qwen_tokenizer import ordinary_tokens, write_qwen_tokenizer
from cantata_layers.random_rules import Rules, gain, norm, specify, values
from cantata_layers.random_tensors import TensorSpec, draw, write_json
from cantata_models.qwen3_asr.config import PUBLISHED, SAVED_AGAIN

WORDS = ("assistant", "language", "English", "Chinese", "system", "user")
"""Each is a single token."""
OFFSETS = {
    "<|endoftext|>": 0,
    "<|im_start|>": 1,
    "<|im_end|>": 2,
    "<|audio_start|>": 26,
    "<|audio_end|>": 27,
    "<|audio_pad|>": 33,
    "<asr_text>": 61,
    "<timestamp>": 62,
}
"""Published ids, less that of the first."""
ORDINARY = ("<asr_text>", "<timestamp>")
"""Those that are words like others."""
TOKENIZER_FIELDS = {
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
    "audio_token": "<|audio_pad|>",
}
LANGUAGES = ("Chinese", "English", "Cantonese", "German", "Japanese", "Filipino")
"""Fewer than the published checkpoints', so that some are unknown."""


def token_ids() -> dict[str, int]:
    """The special tokens' ids in the small vocabulary, in their published order."""
    first = ordinary_tokens(WORDS)
    return {token: first + offset for token, offset in OFFSETS.items()}


def _vocabulary_size() -> int:
    """Tokens of the small vocabulary, up to a multiple of 64."""
    return -(-(max(token_ids().values()) + 1) // 64) * 64


@dataclass(frozen=True, slots=True)
class CheckpointSize:
    """Sizes of encoder and language model."""

    encoder_layers: int
    encoder_width: int
    encoder_heads: int
    channels: int
    """Of the convolutions in front of the encoder."""
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    vocabulary: int

    def encoder(self) -> dict[str, Any]:
        """`audio_config`, but for its type."""
        return {
            "activation_function": "gelu",
            "d_model": self.encoder_width,
            "downsample_hidden_size": self.channels,
            "encoder_attention_heads": self.encoder_heads,
            "encoder_ffn_dim": 4 * self.encoder_width,
            "encoder_layers": self.encoder_layers,
            "n_window": 50,
            "n_window_infer": 800,
            "num_mel_bins": 128,
            "output_dim": self.width,
            "scale_embedding": False,
        }

    def text(self) -> dict[str, Any]:
        """`text_config`, but for its type and rotary positions."""
        return {
            "attention_bias": False,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "hidden_size": self.width,
            "intermediate_size": self.inner,
            "max_position_embeddings": 65_536,
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "num_key_value_heads": self.kv_heads,
            "rms_norm_eps": 1e-06,
            "vocab_size": self.vocabulary,
        }


TINY = CheckpointSize(2, 32, 2, 16, 3, 64, 4, 2, 32, 96, _vocabulary_size())
"""For parity: a second to make and to run."""
SIZES = {
    "tiny": TINY,
    "0.6b": CheckpointSize(18, 896, 14, 480, 28, 1024, 16, 8, 128, 3072, 151_936),
    "1.7b": CheckpointSize(24, 1024, 16, 480, 28, 2048, 16, 8, 128, 6144, 151_936),
}
"""The last two as published, but for the tokenizer; they take as much time and memory."""
THETA = 1_000_000


def published_config(size: CheckpointSize, *, is_tied: bool) -> dict[str, Any]:
    """config.json with all of the model in a section, and rotary positions with three axes."""
    ids = token_ids()
    return {
        "architectures": ["Qwen3ASRForConditionalGeneration"],
        "model_type": "qwen3_asr",
        "support_languages": list(LANGUAGES),
        "thinker_config": {
            "audio_config": {
                **size.encoder(),
                "conv_chunksize": 500,
                "max_source_positions": 1500,
                "model_type": "qwen3_asr_audio_encoder",
            },
            "audio_end_token_id": ids["<|audio_end|>"],
            "audio_start_token_id": ids["<|audio_start|>"],
            "audio_token_id": ids["<|audio_pad|>"],
            "model_type": "qwen3_asr_thinker",
            "text_config": {
                **size.text(),
                "model_type": "qwen3_asr_text",
                "rope_scaling": {
                    "interleaved": True,
                    "mrope_interleaved": True,
                    "mrope_section": [6, 5, 5] if size.head_dim == 32 else [24, 20, 20],
                    "rope_type": "default",
                    "type": "default",
                },
                "rope_theta": THETA,
                "tie_word_embeddings": is_tied,
            },
        },
    }


CLASSES = 64
"""Of the aligner's time; the published one has 5000."""


def aligner_config(size: CheckpointSize) -> dict[str, Any]:
    """The publisher's config.json of a forced aligner."""
    config = published_config(size, is_tied=False)
    config["thinker_config"] |= {"classify_num": CLASSES, "model_type": "qwen3_forced_aligner"}
    del config["support_languages"]
    return config | {
        "timestamp_segment_time": 80,
        "timestamp_token_id": token_ids()["<timestamp>"],
    }


def saved_again_aligner_config(size: CheckpointSize) -> dict[str, Any]:
    """config.json of a forced aligner as transformers writes it."""
    return saved_again_config(size, is_tied=False) | {
        "architectures": ["Qwen3ASRForTokenClassification"],
        "id2label": {str(number): f"LABEL_{number}" for number in range(CLASSES)},
        "label2id": {f"LABEL_{number}": number for number in range(CLASSES)},
    }


def saved_again_config(size: CheckpointSize, *, is_tied: bool) -> dict[str, Any]:
    """config.json as transformers writes it."""
    ids = token_ids()
    return {
        "architectures": ["Qwen3ASRForConditionalGeneration"],
        "audio_config": {
            **size.encoder(),
            "max_position_embeddings": 13,
            "model_type": "qwen3_asr_encoder",
        },
        "audio_token_id": ids["<|audio_pad|>"],
        "eos_token_id": [ids["<|endoftext|>"], ids["<|im_end|>"]],
        "model_type": "qwen3_asr",
        "pad_token_id": ids["<|im_end|>"],
        "text_config": {
            **size.text(),
            "model_type": "qwen3",
            "rope_parameters": {"rope_theta": THETA, "rope_type": "default"},
            "tie_word_embeddings": is_tied,
        },
        "tie_word_embeddings": is_tied,
        "timestamp_token_id": ids["<timestamp>"],
    }


def generation_config() -> dict[str, Any]:
    """generation_config.json."""
    ids = token_ids()
    return {
        "do_sample": False,
        "eos_token_id": [ids["<|endoftext|>"], ids["<|im_end|>"]],
        "pad_token_id": ids["<|endoftext|>"],
    }


PREPROCESSOR = {
    "chunk_length": 30,
    "dither": 0.0,
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 128,
    "hop_length": 160,
    "n_fft": 400,
    "n_samples": 480_000,
    "nb_max_frames": 3_000,
    "padding_side": "right",
    "padding_value": 0.0,
    "processor_class": "Qwen3ASRProcessor",
    "return_attention_mask": True,
}
PROCESSOR = {
    "feature_extractor": {
        "chunk_length": 30,
        "dither": 0.0,
        "feature_extractor_type": "Qwen3ASRFeatureExtractor",
        "feature_size": 128,
        "hop_length": 160,
        "min_length": 8_000,
        "n_fft": 400,
        "n_samples": 480_000,
        "n_window": 50,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": True,
        "sampling_rate": 16_000,
    },
    "processor_class": "Qwen3ASRProcessor",
    "timestamp_segment_time": 80.0,
}
"""processor_config.json, where transformers puts the extractor's settings."""
CHAT_TEMPLATE = """\
{%- set said = namespace(system="", answer="") -%}
{%- for message in messages -%}
{%- if message.role != "user" -%}
{%- set text = message.content if message.content is string else message.content[0].text -%}
{%- if message.role == "system" -%}{%- set said.system = text -%}
{%- else -%}{%- set said.answer = text -%}{%- endif -%}
{%- endif -%}
{%- endfor -%}
{{ "<|im_start|>system\\n" + said.system + "<|im_end|>\\n<|im_start|>user\\n" }}
{{- "<|audio_start|><|audio_pad|><|audio_end|><|im_end|>\\n<|im_start|>assistant\\n" }}
{{- said.answer }}
"""
"""Lays out the published dialogue."""


RULES: Rules = {
    r"[qk]_norm\.weight$": norm(3.0),
    r"o_proj\.weight$": gain(3.0),
    r"down_proj\.weight$": gain(2.0),
    r"embed_tokens\.weight$": values(1.0),
    r"lm_head\.weight$": gain(3.0),
    r"conv2d\d\.weight$": gain(1.5),
    r"audio_tower.*[qk]_proj\.weight$": gain(2.0),
    r"linear_[12]\.weight$": gain(2.0),
}


def checkpoint_tensors(config: Mapping[str, Any], *, is_tied: bool) -> Iterator[TensorSpec]:
    """Yield every tensor of a checkpoint under transformers' names.

    Args:
        config: transformers' config.json.
        is_tied: whether the head is the table of embeddings, and so no tensor of its own.
    """
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model = Qwen3ASRForConditionalGeneration(AutoConfig.for_model("qwen3_asr", **arguments))
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in model.state_dict().items()
        if not (is_tied and name.startswith(SAVED_AGAIN.head))
    }
    yield from specify(shapes, RULES)


def aligner_tensors(config: Mapping[str, Any], classes: int) -> Iterator[TensorSpec]:
    """Yield every tensor of a forced aligner, whose head is as large as its classes. `config`: as
    `checkpoint_tensors`."""
    for spec in checkpoint_tensors(config, is_tied=False):
        is_head = spec.name.startswith(SAVED_AGAIN.head)
        yield replace(spec, shape=(classes, spec.shape[1])) if is_head else spec


def to_published(spec: TensorSpec) -> str:
    """The name that the publisher gives a tensor."""
    ours = (SAVED_AGAIN.network, SAVED_AGAIN.head, SAVED_AGAIN.encoder, *SAVED_AGAIN.projector)
    theirs = (PUBLISHED.network, PUBLISHED.head, PUBLISHED.encoder, *PUBLISHED.projector)
    begin, other = next(
        pair for pair in zip(ours, theirs, strict=True) if spec.name.startswith(pair[0])
    )
    return other + spec.name.removeprefix(begin)


END_GAIN = 2.0
"""Of the rows that score the end of an answer: many end within a few steps."""
ENDS = ("<|im_end|>", "<|endoftext|>")


def write_checkpoint(
    folder: Path,
    seed: int,
    *,
    size: CheckpointSize = TINY,
    dtype: torch.dtype = torch.float32,
    is_published: bool = True,
    is_tied: bool = False,
) -> Path:
    """Write a checkpoint into `folder` and return it.

    Args:
        folder: made if it is missing.
        seed: of all weights, which both forms have in common.
        size: one of `configs`.
        is_published: in the publisher's form; otherwise as transformers saves it.
        is_tied: whether its head is its table of embeddings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    again = saved_again_config(size, is_tied=is_tied)
    write_json(folder / "generation_config.json", generation_config())
    write_qwen_tokenizer(folder, token_ids(), TOKENIZER_FIELDS, WORDS, ORDINARY)
    if is_published:
        write_json(folder / "config.json", published_config(size, is_tied=is_tied))
        write_json(folder / "preprocessor_config.json", PREPROCESSOR)
        write_json(folder / "chat_template.json", {"chat_template": CHAT_TEMPLATE})
    else:
        write_json(folder / "config.json", again)
        write_json(folder / "processor_config.json", PROCESSOR)
        (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    _save(
        folder,
        {
            to_published(spec) if is_published else spec.name: _drawn(spec, seed).to(dtype)
            for spec in checkpoint_tensors(again, is_tied=is_tied)
        },
    )
    return folder


def write_aligner(folder: Path, seed: int, *, is_published: bool = True) -> Path:
    """Write a tiny forced aligner into `folder` and return it; otherwise as `write_checkpoint`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_qwen_tokenizer(folder, token_ids(), TOKENIZER_FIELDS, WORDS, ORDINARY)
    if is_published:
        write_json(folder / "config.json", aligner_config(TINY))
        write_json(folder / "preprocessor_config.json", PREPROCESSOR)
    else:
        write_json(folder / "config.json", saved_again_aligner_config(TINY))
        write_json(folder / "processor_config.json", PROCESSOR)
    specs = aligner_tensors(saved_again_config(TINY, is_tied=False), CLASSES)
    _save(
        folder,
        {
            to_published(spec)
            if is_published
            else spec.name.replace(SAVED_AGAIN.head, "score."): torch.from_numpy(draw(spec, seed))
            for spec in specs
        },
    )
    return folder


def _save(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    path = folder / "model.safetensors"
    save_file(dict(tensors), path, metadata={"format": "pt"})
    path.chmod(0o644)


def _drawn(spec: TensorSpec, seed: int) -> torch.Tensor:
    drawn = draw(spec, seed)
    if spec.name == f"{SAVED_AGAIN.head}weight":
        drawn[[token_ids()[end] for end in ENDS]] *= np.float32(END_GAIN)
    return torch.from_numpy(drawn)


def write_tiny(folder: Path) -> None:
    write_checkpoint(folder, seed=1)


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen3_asr.random_checkpoint",
        description="Write random weights (tiny: 1 MB, 0.6b: 1.6 GB, 1.7b: 4.1 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    is_tiny = arguments.size == "tiny"
    print(
        write_checkpoint(
            arguments.folder,
            arguments.seed,
            size=SIZES[arguments.size],
            dtype=torch.float32 if is_tiny else torch.bfloat16,
            is_tied=not is_tiny,
        )
    )


if __name__ == "__main__":
    main()
