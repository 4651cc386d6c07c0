"""Which tokens may follow in an answer that is held to a grammar, in the stage that writes it.

Letters: V tokens of the vocabulary.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xgrammar
from cachetools import LRUCache
from numpy.typing import NDArray
from transformers import AutoTokenizer

from cantata.contract.data.errors import RequestFailed

_KEPT = 64 << 20
"""Bytes of compiled grammars."""


def load_vocabulary(
    checkpoint: Path, vocabulary: int, ends: tuple[int, ...]
) -> xgrammar.TokenizerInfo:
    """Return a checkpoint's tokens as xgrammar knows them.

    Args:
        vocabulary: V.
        ends: tokens that end an answer.
    """
    tokenizer: Any = AutoTokenizer.from_pretrained(str(checkpoint))
    return xgrammar.TokenizerInfo.from_huggingface(
        tokenizer, vocab_size=vocabulary, stop_token_ids=list(ends)
    )


class TokenGuides:
    """Opens the guides of one checkpoint's answers.

    Args: as of `load_vocabulary`.
    """

    def __init__(self, checkpoint: Path, vocabulary: int, ends: tuple[int, ...]) -> None:
        self._tokens = load_vocabulary(checkpoint, vocabulary, ends)
        self._ends = ends
        # WHY: xgrammar lets control characters pass in some strings of JSON.
        words = self._tokens.decoded_vocab
        self._in_json = np.array([_is_clean(one, b"\n") for one in words])
        self._in_text = np.array([_is_clean(one, b"\t\n\r") for one in words])
        self._compiled = LRUCache[bytes, xgrammar.CompiledGrammar](
            _KEPT, getsizeof=lambda one: one.memory_size_bytes
        )

    def open(self, grammar: bytes, after: tuple[int, ...], *, is_json: bool) -> TokenGuide:
        """Begin an answer.

        Args:
            grammar: of `GrammarCompiler`.
            after: tokens of which any lets it begin; none: it begins at once.
            is_json: the whole answer is JSON.

        Raises:
            RequestFailed: it was compiled for another vocabulary.
        """
        digest = sha256(grammar).digest()
        compiled = self._compiled.get(digest)
        if compiled is None:
            try:
                compiled = xgrammar.CompiledGrammar.deserialize_json(grammar.decode(), self._tokens)
            except RuntimeError as error:
                raise RequestFailed(f"the grammar cannot be read: {error}") from error
            if compiled.memory_size_bytes <= _KEPT:
                self._compiled[digest] = compiled
        matcher = xgrammar.GrammarMatcher(compiled)
        possible = self._in_json if is_json else self._in_text
        return TokenGuide(matcher, possible, self._ends, after)


def _is_clean(token: bytes, allowed: bytes) -> bool:
    """Whether it has no control characters but those."""
    return all(byte >= ord(" ") or byte in allowed for byte in token)


class TokenGuide:
    """Implements `contract.model.embedding_source.CodeGuide`.

    Args:
        possible: [V] tokens that no grammar allows are False.
        after: as of `TokenGuides.open`.
    """

    def __init__(
        self,
        matcher: xgrammar.GrammarMatcher,
        possible: NDArray[np.bool_],
        ends: tuple[int, ...],
        after: tuple[int, ...],
    ) -> None:
        self._matcher = matcher
        self._possible = possible
        self._words = xgrammar.allocate_token_bitmask(1, len(possible))
        """[1, V / 32] int32: a bit for each token."""
        self._ends = list(ends)
        self._after = after
        self._over = False
        """Nothing but an end may follow."""

    def allowed(self) -> NDArray[np.bool_] | None:
        """[V]. Where the grammar leaves no token, the ends."""
        if self._after:
            return None
        if not self._over:
            self._matcher.fill_next_token_bitmask(self._words)
            bits = np.unpackbits(self._words.view(torch.uint8).numpy()[0], bitorder="little")
            may: NDArray[np.bool_] = bits[: len(self._possible)].astype(bool) & self._possible
            if may.any():
                return may
        end = np.zeros(len(self._possible), bool)
        end[self._ends] = True
        return end

    def accept(self, code: int) -> None:
        """Follow the grammar, or find its beginning."""
        if self._after:
            if code in self._after:
                self._after = ()
            return
        self._over = self._over or not self._matcher.accept_token(code)
        self._over = self._over or self._matcher.is_terminated()
