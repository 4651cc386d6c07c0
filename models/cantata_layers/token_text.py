"""Tokens as text while they are made, and as the bytes that they stand for."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders
from tokenizers.decoders import DecodeStream


class TokenReader:
    """Implements `contract.model.conversation.TextReader`."""

    def __init__(self, tokenizer: Tokenizer, *, skip_special_tokens: bool = True) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=skip_special_tokens)

    def read(self, tokens: NDArray[np.int32]) -> str:
        """The text of [T] more tokens, less what may be part of an unfinished character."""
        pieces = (self._stream.step(self._tokenizer, token) for token in tokens.tolist())
        return "".join(piece for piece in pieces if piece is not None)

    def end(self) -> str:
        """Nothing: what is unfinished is no character."""
        return ""


@cache
def list_byte_symbols() -> tuple[str, ...]:
    """[256] the character that stands for each byte in a vocabulary (github.com/openai/gpt-2):
    itself if it can be seen, or else one of the characters from U+0100 on, in order."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in visible]
    return tuple(chr(byte if byte in visible else 256 + others.index(byte)) for byte in range(256))


def get_token_bytes(tokenizer: Tokenizer, token: int) -> bytes:
    """A token as UTF-8, of which it may be a part of a character; empty if it is unknown."""
    values = _map_symbols()
    return bytes(values[symbol] for symbol in tokenizer.id_to_token(token) or "")


@cache
def _map_symbols() -> dict[str, int]:
    return {symbol: byte for byte, symbol in enumerate(list_byte_symbols())}


_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_BLANK = "\u2581"
"""Stands for a blank in vocabularies of SentencePiece."""


class TokenBytes:
    """The tokens of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._of_bytes = isinstance(tokenizer.decoder, decoders.ByteLevel)
        added = tokenizer.get_added_tokens_decoder()
        self._added = {token: one.content.encode() for token, one in added.items()}

    def get(self, token: int) -> bytes:
        """UTF-8, of which it may be a part of a character; empty if it has no text."""
        if (added := self._added.get(token)) is not None:
            return added
        if self._of_bytes:
            return get_token_bytes(self._tokenizer, token)
        text = self._tokenizer.id_to_token(token) or ""
        if (byte := _BYTE.fullmatch(text)) is not None:
            return bytes.fromhex(byte[1])
        return text.replace(_BLANK, " ").encode()
