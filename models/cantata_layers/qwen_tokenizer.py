"""Qwen's published tokenizer: byte-level BPE over its pieces of text.

It is read from tokenizer.json, as libraries save it today, or else from vocab.json, merges.txt and
tokenizer_config.json, as it was published.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json

PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Contractions, words, digits, punctuation, line ends, spaces. No token spans two pieces."""


def load_qwen_tokenizer(checkpoint: Path) -> Tokenizer:
    """Load a checkpoint's tokenizer.

    A special token spelled in a text is not one: it is encoded as ordinary characters. Added tokens
    that the checkpoint calls ordinary, such as `<tool_call>`, are words like others.

    Raises:
        ConfigError: a file is missing or damaged.
    """
    whole = checkpoint / "tokenizer.json"
    if whole.is_file():
        return _load_whole(whole)
    vocabulary, merges = checkpoint / "vocab.json", checkpoint / "merges.txt"
    try:
        model = BPE.from_file(str(vocabulary), str(merges))
    except Exception as error:  # the library raises plain Exception
        raise ConfigError(
            f"{checkpoint}: no tokenizer.json, and no readable vocab.json and merges.txt: {error}"
        ) from error
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(_list_added_tokens(checkpoint))
    tokenizer.encode_special_tokens = True
    return tokenizer


def _load_whole(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ConfigError(f"{path}: not a readable tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _list_added_tokens(checkpoint: Path) -> list[AddedToken]:
    """Return added tokens in the order of their ids, because the library assigns ids in order.

    They are in tokenizer_config.json or, in files of before 2023, in added_tokens.json.
    """
    fields = read_json(checkpoint / "tokenizer_config.json")
    by_id: dict[int, Any] = {
        int(index): token for index, token in fields.items("added_tokens_decoder").items()
    }
    older = checkpoint / "added_tokens.json"
    if not by_id and older.is_file():
        by_id = {index: {"content": token} for token, index in read_json(older).values.items()}
    return [
        AddedToken(
            by_id[index]["content"], normalized=False, special=by_id[index].get("special", True)
        )
        for index in sorted(by_id)
    ]
