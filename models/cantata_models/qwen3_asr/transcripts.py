"""Reads what the thinker writes: `language NAME<asr_text>` and the text, or the text alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from cantata.contract.data.transcripts import TokenLogprob
from cantata_layers.byte_level import get_token_bytes
from cantata_models.qwen3_asr.languages import LANGUAGES
from cantata_models.qwen3_asr.prompt import ASR_TEXT

_REPEATED_CHARACTER = re.compile(r"(.)\1{20,}", re.DOTALL)
_REPEATED_PHRASE = re.compile(r"(?=.{40})(.{1,20}?)\1{19,}", re.DOTALL)
"""WHY only where 40 characters are left: so do the references, whose texts these are to equal."""
_NAMED = re.compile(r"^\s*language +(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WrittenSpeech:
    """What an answer says."""

    text: str
    """Without spaces around it."""
    language: str
    """BCP 47 tag; empty: unknown."""


def parse_answer(answer: str) -> WrittenSpeech:
    """Tell the text from the language in front of it, which is absent if the prompt named one."""
    whole = shorten_loops(answer.strip())
    before, mark, text = whole.partition(ASR_TEXT)
    if not mark:
        return WrittenSpeech(whole, "")
    named = _NAMED.search(before)
    name = named[1].capitalize() if named else ""
    return WrittenSpeech(text.strip(), LANGUAGES.get(name, ""))


def list_logprobs(
    tokenizer: Tokenizer, tokens: Sequence[int], logprobs: Sequence[float]
) -> tuple[TokenLogprob, ...]:
    """The tokens of an answer's text, those after the mark behind the language.

    Args:
        tokenizer: of the checkpoint.
        tokens: [T] of the answer.
        logprobs: [T], or none, if they were not asked for.
    """
    mark = tokenizer.token_to_id(ASR_TEXT)
    first = tokens.index(mark) + 1 if mark in tokens else 0
    special = {n for n, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    return tuple(
        TokenLogprob(tokenizer.decode([token]), tuple(get_token_bytes(tokenizer, token)), logprob)
        for token, logprob in zip(tokens[first:], logprobs[first:], strict=bool(logprobs))
        if token not in special
    )


def shorten_loops(text: str) -> str:
    """Leave one of a character that comes more than 20 times in a row, and one of a phrase of up to
    20 characters that comes 20 times or more: there the thinker has lost the thread."""
    return _REPEATED_PHRASE.sub(r"\1", _REPEATED_CHARACTER.sub(r"\1", text))
