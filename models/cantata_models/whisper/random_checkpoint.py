"""Small Whisper checkpoints with random weights, in both forms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from ctranslate2.converters import TransformersConverter
from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

_TOKENIZER = Path(__file__).parent / "weights" / "tokenizer.json"
"""The one that ships."""
_TEXT_TOKENS = 50_256
_TIMESTAMPS = 1501
_WIDTH = 32
_SPREAD = 0.3
"""Of the weights; enough for texts to depend on the sound."""
ALIGNMENT_HEADS = [[0, 1], [1, 0]]
SUPPRESSED = [1, 2, 7, 8, 9, 10, 14, 25]
SUPPRESSED_FIRST = [220]


@dataclass(frozen=True, slots=True)
class RandomShape:
    """What distinguishes the checkpoints."""

    languages: tuple[str, ...]
    """Codes; only one: English alone."""
    mel_bins: int
    seed: int = 0


def _list_codes() -> tuple[str, ...]:
    """The 99 languages, in the order of the tokenizer that ships."""
    whole = json.loads(_TOKENIZER.read_text("utf-8"))
    tokens = [token["content"] for token in whole["added_tokens"]]
    first, last = tokens.index("<|en|>"), tokens.index("<|translate|>")
    return tuple(token.strip("<|>") for token in tokens[first:last])


CODES = _list_codes()
MANY = RandomShape(CODES, 80)
LARGE = RandomShape((*CODES, "yue"), 128, seed=1)
ENGLISH = RandomShape(CODES[:1], 80, seed=2)


def write_converted_checkpoint(folder: Path, shape: RandomShape) -> None:
    """Write a folder in CTranslate2's form, as its converter writes it."""
    copied = ["tokenizer.json", "preprocessor_config.json"]
    with TemporaryDirectory() as saved:
        write_random_checkpoint(Path(saved), shape)
        TransformersConverter(saved, copy_files=copied).convert(str(folder), force=True)


def write_random_checkpoint(folder: Path, shape: RandomShape) -> Path:
    """Write a folder as `save_pretrained` does, with `tokenizer.json`, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    marks = _write_tokenizer(folder, shape)
    torch.manual_seed(shape.seed)
    end = marks["<|endoftext|>"]
    config = WhisperConfig(
        vocab_size=marks["<|notimestamps|>"] + 1 + _TIMESTAMPS,
        num_mel_bins=shape.mel_bins,
        d_model=_WIDTH,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        init_std=_SPREAD,
        pad_token_id=end,
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=marks["<|startoftranscript|>"],
    )
    model = WhisperForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        alignment_heads=ALIGNMENT_HEADS,
        suppress_tokens=SUPPRESSED,
        begin_suppress_tokens=[*SUPPRESSED_FIRST, end],
        no_timestamps_token_id=marks["<|notimestamps|>"],
        lang_to_id={f"<|{code}|>": marks[f"<|{code}|>"] for code in shape.languages},
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=marks["<|startoftranscript|>"],
    )
    model.save_pretrained(folder)
    return folder


def _write_tokenizer(folder: Path, shape: RandomShape) -> dict[str, int]:
    """Write the tokenizer that ships, with other marks; returns their numbers."""
    whole = json.loads(_TOKENIZER.read_text("utf-8"))
    is_multilingual = len(shape.languages) > 1
    vocabulary: dict[str, Any] = whole["model"]["vocab"]
    del vocabulary["<|endoftext|>"]
    if is_multilingual:
        vocabulary[""] = _TEXT_TOKENS
    languages = shape.languages if is_multilingual else CODES
    marks = [
        "<|endoftext|>",
        "<|startoftranscript|>",
        *(f"<|{code}|>" for code in languages),
        *("<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>"),
        *("<|nospeech|>", "<|notimestamps|>"),
    ]
    numbers = {mark: len(vocabulary) + place for place, mark in enumerate(marks)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    whole["added_tokens"] = [
        {"id": number, "content": mark, "special": True, **flags}
        for mark, number in numbers.items()
    ]
    whole["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    extractor = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": shape.mel_bins,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(extractor), encoding="utf-8")
    return numbers


def write_tiny(folder: Path) -> None:
    """Write a tiny multilingual checkpoint in CTranslate2's form."""
    write_converted_checkpoint(folder, MANY)
