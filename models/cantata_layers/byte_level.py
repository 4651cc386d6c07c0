"""Byte-level BPE: which bytes a token of such a vocabulary stands for."""

from __future__ import annotations

from functools import cache

from tokenizers import Tokenizer


@cache
def list_byte_symbols() -> tuple[str, ...]:
    """[256] the character that stands for each byte in a vocabulary (github.com/openai/gpt-2):
    itself if it can be seen, or else one of the characters from U+0100 on, in order."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in visible]
    return tuple(chr(byte if byte in visible else 256 + others.index(byte)) for byte in range(256))


def get_token_bytes(tokenizer: Tokenizer, token: int) -> bytes:
    """A token as UTF-8, of which it may be a part of a character; empty if it is unknown."""
    values = _values_of_symbols()
    return bytes(values[symbol] for symbol in tokenizer.id_to_token(token) or "")


@cache
def _values_of_symbols() -> dict[str, int]:
    return {symbol: byte for byte, symbol in enumerate(list_byte_symbols())}
