"""The tokenizer and the chat template that a GGUF file holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import generate_merges

from cantata.contract.data.errors import ConfigError
from cantata_models.text_model.gguf.reader import GgufFile

_KEY = "tokenizer.ggml"
_TEMPLATE, _TEMPLATES = "tokenizer.chat_template", "tokenizer.chat_templates"
_SPACE = "\u2581"
"""A blank, as SentencePiece writes it."""


class TokenType(IntEnum):
    """Values of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def make_tokenizer(file: GgufFile) -> Any:
    """Return the file's tokenizer, with its chat template, as transformers has it. Raises
    ConfigError: it is of another kind, damaged, or without a chat template."""
    tokens = tuple(map(str, file.list(f"{_KEY}.tokens")))
    types = file.list(f"{_KEY}.token_type") or (TokenType.NORMAL,) * len(tokens)
    if not tokens or len(types) != len(tokens):
        raise ConfigError(f"{file.path}: {len(tokens)} tokens and {len(types)} types of them")
    kind = file.get(f"{_KEY}.model", str)
    make = _MAKERS.get(kind)
    if make is None:
        raise ConfigError(f"{file.path}: {_KEY}.model is {kind!r}; valid: {sorted(_MAKERS)}")
    words = make(file, tokens, types)
    for special in (True, False):
        wanted = TokenType.CONTROL if special else TokenType.USER_DEFINED
        words.add_tokens(
            [
                AddedToken(token, special=special, normalized=False)
                for token, own in zip(tokens, types, strict=True)
                if own == wanted
            ]
        )
    named = _name_special(file, tokens)
    begins = named.get("bos_token")
    if begins is not None and file.find(f"{_KEY}.add_bos_token", bool):
        added = processors.TemplateProcessing(
            single=[begins, "$A"], special_tokens=[(begins, tokens.index(begins))]
        )
        own = words.post_processor
        words.post_processor = added if own is None else processors.Sequence([own, added])
    wrap: Any = PreTrainedTokenizerFast
    tokenizer = wrap(tokenizer_object=words, clean_up_tokenization_spaces=False, **named)
    tokenizer.chat_template = _read_templates(file)
    return tokenizer


def _read_templates(file: GgufFile) -> str | dict[str, str]:
    template = file.find(_TEMPLATE, str)
    if not template:
        raise ConfigError(
            f"{file.path}: has no chat template ({_TEMPLATE}); pass the file of a model that was "
            "trained for conversations, often called instruct or chat"
        )
    names = file.list(_TEMPLATES)
    others = {str(name): file.get(f"{_TEMPLATE}.{name}", str) for name in names}
    return {"default": template, **others} if others else template


def _name_special(file: GgufFile, tokens: tuple[str, ...]) -> dict[str, str]:
    """Return transformers' names of tokens with a role."""
    named: dict[str, str] = {}
    for key, role in (("bos", "bos"), ("eos", "eos"), ("unknown", "unk"), ("padding", "pad")):
        token = file.find(f"{_KEY}.{key}_token_id", int)
        if token is None:
            continue
        if not 0 <= token < len(tokens):
            raise ConfigError(
                f"{file.path}: {_KEY}.{key}_token_id is {token}; there are {len(tokens)} tokens"
            )
        named[f"{role}_token"] = tokens[token]
    return named


_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"


def _split_by_pattern(digits: str) -> Any:
    pattern = Regex(_ENDINGS + _WORD % digits)
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _split_as_gpt2() -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _split_digits() -> Any:
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), _split_as_gpt2()]
    )


def _split_as_llama3() -> Any:
    return _split_by_pattern("{1,3}")


def _split_as_qwen2() -> Any:
    return _split_by_pattern("")


_QWEN2, _LLAMA3 = ("qwen2", "deepseek-r1-qwen"), ("llama-bpe", "llama3", "llama-v3")
_SPLITTERS: Mapping[str, Callable[[], Any]] = {
    "default": _split_as_gpt2,
    "gpt-2": _split_as_gpt2,
    "smollm": _split_digits,
    **dict.fromkeys(_QWEN2, _split_as_qwen2),
    **dict.fromkeys(_LLAMA3, _split_as_llama3),
}
"""By llama.cpp's names: how a text is cut before tokens are merged."""


def _make_byte_level(file: GgufFile, tokens: tuple[str, ...], types: tuple[int, ...]) -> Tokenizer:
    name = file.get(f"{_KEY}.pre", str, "default")
    split = _SPLITTERS.get(name)
    if split is None:
        raise ConfigError(f"{file.path}: {_KEY}.pre is {name!r}; valid: {sorted(_SPLITTERS)}")
    # What fills the vocabulary up stands for no text.
    vocabulary = {
        token: index
        for index, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if kind != TokenType.UNUSED
    }
    parts = [str(merge).partition(" ") for merge in file.list(f"{_KEY}.merges")]
    pairs = [(left, right) for left, _, right in parts]
    try:
        bpe = models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=name in _LLAMA3)
    except Exception as error:  # the package raises nothing more specific
        raise ConfigError(f"{file.path}: {_KEY}.merges: {error}") from error
    words = Tokenizer(bpe)
    if name in _QWEN2:
        words.normalizer = normalizers.NFC()
    words.pre_tokenizer = split()
    words.decoder = decoders.ByteLevel()
    words.post_processor = processors.ByteLevel(trim_offsets=False)
    return words


def _make_sentence_piece(
    file: GgufFile, tokens: tuple[str, ...], types: tuple[int, ...]
) -> Tokenizer:
    scores = file.list(f"{_KEY}.scores")
    if len(scores) != len(tokens):
        raise ConfigError(f"{file.path}: {len(tokens)} tokens and {len(scores)} scores of them")
    mergeable = (TokenType.NORMAL, TokenType.USER_DEFINED)
    scored = {
        token: score
        for token, score, kind in zip(tokens, scores, types, strict=True)
        if kind in mergeable
    }
    vocabulary = {token: index for index, token in enumerate(tokens)}
    unknown = file.get(f"{_KEY}.unknown_token_id", int, 0)
    words = Tokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=generate_merges(vocabulary, scored),
            unk_token=tokens[unknown] if unknown < len(tokens) else None,
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    begins_with_space = file.get(f"{_KEY}.add_space_prefix", bool, True)
    replace = normalizers.Replace(" ", _SPACE)
    words.normalizer = (
        normalizers.Sequence([normalizers.Prepend(_SPACE), replace])
        if begins_with_space
        else replace
    )
    words.decoder = decoders.Sequence(
        [
            decoders.Replace(_SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            *([decoders.Strip(" ", 1, 0)] if begins_with_space else []),
        ]
    )
    return words


_MAKERS: Mapping[str, Callable[[GgufFile, tuple[str, ...], tuple[int, ...]], Tokenizer]] = {
    "gpt2": _make_byte_level,
    "llama": _make_sentence_piece,
}
