"""Tokens as the bytes that they stand for, whatever kind of vocabulary they are of."""

from __future__ import annotations

import re

from tokenizers import Tokenizer, decoders

from cantata_layers.byte_level import get_token_bytes

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
