"""A text as pieces that the model speaks one by one, as tokens, and as the stages' inputs.

The model was trained on single sentences. A text is put right, cut behind its sentences (behind
clauses if one is too long), and neighbours share a piece while it stays short enough. Source of the
rules: the package `pocket_tts`, models/text_chunking.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import SamplingOptions
from cantata_models.pocket_tts.config import PocketConfig, TextRules

MAX_TOKENS = 50
"""Of a piece, unless a clause alone has more."""
SENTENCE_MARKS, CLAUSE_MARKS = ".!...?", ",;:"
"""Their tokens end a sentence or a clause; the first token of each is left out, since a text's
beginning is part of it."""
ENDS, WEAK, CLOSING = ".!?\u2026", ",;:-\u2013\u2014", "\"'\u201d\u2019)]\u00bb"
FEW_WORDS, PADDED_WORDS = 4, 5
FRAMES_AFTER_FEW, FRAMES_AFTER = 5, 3
"""Frames from the one that ends the text on: more where there are few words."""
_COMMA_AFTER_END = re.compile(r"([.!?\u2026])\s*[,;:]")


class TokenMapper(Protocol):
    """A checkpoint's tokenizer."""

    def encode(self, text: str) -> list[int]: ...
    def decode(self, tokens: Sequence[int]) -> str: ...


class SentencePieceMapper:
    """A `tokenizer.model`."""

    def __init__(self, path: Path) -> None:
        try:
            self._processor = SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise ConfigError(f"{path}: no readable tokenizer: {error}") from error
        self.size: int = self._processor.vocab_size()

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = self._processor.encode(text, out_type=int)
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._processor.decode(list(tokens)))


class JsonMapper:
    """A `tokenizer.json`."""

    def __init__(self, path: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ConfigError(f"{path}: no readable tokenizer: {error}") from error
        self.size: int = self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text).ids
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens)))


@dataclass(frozen=True, slots=True)
class TextPiece:
    """What is spoken in one go."""

    text: str
    tokens: tuple[int, ...]
    frames_after_eos: int


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """A sentence or a clause."""

    count: int
    """Tokens."""
    text: str


class PocketTextReader:
    """Cuts texts into pieces by a checkpoint's rules and tokens."""

    def __init__(self, mapper: TokenMapper, rules: TextRules) -> None:
        self._mapper, self._rules = mapper, rules
        self._replaced = {ord(before): after for before, after in rules.replaced.items()}
        self._sentence_ends = set(mapper.encode(SENTENCE_MARKS)[1:])
        self._clause_ends = set(mapper.encode(CLAUSE_MARKS)[1:])

    def read(self, text: str) -> tuple[TextPiece, ...]:
        """Return the pieces of a text; none of one without characters."""
        return tuple(self._piece(cut) for cut in self._split(text) if self._right(cut))

    def _split(self, text: str) -> list[str]:
        whole = self._finished(self._right(text)).strip()
        segments: list[SentenceSpan] = []
        for sentence in self._cut(whole, self._sentence_ends, sentences=True):
            clauses = [sentence]
            if sentence.count > MAX_TOKENS:
                clauses = list(self._cut(sentence.text.strip(), self._clause_ends))
            # A sentence that has no clauses keeps the number that it had in the text.
            segments += clauses if len(clauses) > 1 else [sentence]
        return list(_joined(segments))

    def _piece(self, text: str) -> TextPiece:
        right = self._right(text)
        few = len(right.split()) <= FEW_WORDS
        spoken = self._finished(right)
        if self._rules.padded and len(spoken.split()) < PADDED_WORDS:
            spoken = " " * 8 + spoken
        tokens = tuple(self._mapper.encode(spoken))
        return TextPiece(spoken, tokens, FRAMES_AFTER_FEW if few else FRAMES_AFTER)

    def _right(self, text: str) -> str:
        """The text in one line, with characters that the model knows."""
        text = text.strip()
        if self._rules.replaced:
            text = " ".join(text.translate(self._replaced).split())
            # Without its quotes, '"Hi?", she said' would have a comma behind the mark.
            text = _COMMA_AFTER_END.sub(r"\1", text)
        for white in ("\n", "\r", "  "):
            text = text.replace(white, " ")
        return text.replace(";", ",") if self._rules.without_semicolons else text

    def _finished(self, text: str) -> str:
        """The text with a capital first and a mark at its end, if it has any characters."""
        if text and self._rules.capitalised and not text[0].isupper():
            text = text[0].upper() + text[1:]
        core = text.rstrip(CLOSING + " ")
        if not self._rules.ended or not core or core[-1] in ENDS:
            return text
        if core[-1] in WEAK:
            return core.rstrip(WEAK + " ") + "." + text[len(core) :].strip()
        return text + "."

    def _cut(
        self, text: str, ends: Collection[int], *, sentences: bool = False
    ) -> Iterator[SentenceSpan]:
        """Cut behind each run of tokens that end a segment; a decimal point ends no sentence."""
        tokens = self._mapper.encode(text)
        starts = [
            index
            for index in range(1, len(tokens))
            if tokens[index - 1] in ends
            and tokens[index] not in ends
            and not (sentences and self._is_decimal(tokens, index))
        ]
        for start, end in zip([0, *starts], [*starts, len(tokens)], strict=True):
            yield SentenceSpan(end - start, self._mapper.decode(tokens[start:end]))

    def _is_decimal(self, tokens: Sequence[int], index: int) -> bool:
        before, behind = self._mapper.decode(tokens[:index]), self._mapper.decode(tokens[index:])
        return before[-1:] == "." and before[-2:-1].isdigit() and behind[:1].isdigit()


def _joined(segments: Sequence[SentenceSpan]) -> Iterator[str]:
    """Join neighbours as long as they have few enough tokens."""
    text, count = "", 0
    for segment in segments:
        if text and count + segment.count > MAX_TOKENS:
            yield text.strip()
            text = ""
        text, count = (
            (f"{text} {segment.text}", count + segment.count)
            if text
            else (segment.text, segment.count)
        )
    if text:
        yield text.strip()


def load_reader(config: PocketConfig) -> PocketTextReader:
    """Return the reader of a checkpoint. Raises ConfigError: its tokenizer is missing, damaged or
    of another size."""
    path = config.tokenizer
    mapper = JsonMapper(path) if path.suffix == ".json" else SentencePieceMapper(path)
    if mapper.size != config.vocabulary:
        raise ConfigError(
            f"{path}: {mapper.size} tokens; the configuration says {config.vocabulary}"
        )
    return PocketTextReader(mapper, config.text)


FRAME_COLUMNS = 1
"""Of a frame, behind its latent: how long ago the text ended, which only the talker reads."""


@dataclass(frozen=True, slots=True)
class PocketEncoderInput:
    """A recording of a speaker."""

    samples: NDArray[np.float32]
    """[N] mono."""
    sample_rate: int
    """Hz, the recording's own."""


@dataclass(frozen=True, slots=True)
class PocketTalkerInput:
    """What to say, and how."""

    text: tuple[int, ...]
    """Tokens of one piece."""
    voice: str | None
    """A voice of the checkpoint's; None: that of a recording."""
    max_frames: int
    frames_after_eos: int
    """Frames that follow the one that ends the text, which counts."""
    eos_threshold: float
    """The score above which a frame ends the text."""
    temperature: float
    """Variance of the noise."""
    noise_clamp: float
    """No number of the noise is further from 0; 0: no bound."""
    steps: int
    """Of the head, for each frame."""
    sampling: SamplingOptions
    """Its seed alone matters."""
