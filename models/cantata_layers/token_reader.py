"""Tokens of an answer as text, while they are made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
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
