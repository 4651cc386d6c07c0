"""A text as tokens, and the layout of text tokens and codec codes in a talker's prompt.

An input row is the sum of a projected text token and an embedded code; either may be missing. Rows
beyond the prompt hold the text that is added to the frames, one token per frame; the last row
repeats. In every mode the layout is

    instruction | role | tag, speaker                                | spoken text
    text        | text | text pad ..., text bos + codes, codec pad   | see `Qwen3TtsPromptBuilder`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import SamplingOptions
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_tts.config import Qwen3TtsCodecIds, Qwen3TtsTextIds

UNSETTLED_PIECES = 2
"""If more text follows, the last piece may grow, and a combining mark may join the one before."""


class Qwen3TtsTokenizer:
    """A checkpoint's tokenizer.

    Raises:
        ConfigError: a file is missing or damaged, or a word of the prompt template is not a
            single token.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        self.role = self._list_template("<|im_start|>", "assistant", "\n")
        """The tokens before the spoken text."""
        self._user = self._list_template("<|im_start|>", "user", "\n")
        self._end = self._list_template("<|im_end|>", "\n")

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def instruction(self, text: str) -> tuple[int, ...]:
        """Return the tokens of an instruction in its template, none if it is empty."""
        body = self.encode(text.strip())
        return (*self._user, *body, *self._end) if body else ()

    def settled(self, text: str) -> int:
        """Return how many characters of an incomplete text can already be encoded."""
        pieces = self._tokenizer.pre_tokenizer.pre_tokenize_str(text)
        if len(pieces) <= UNSETTLED_PIECES:
            return 0
        _, (start, _) = pieces[-UNSETTLED_PIECES]
        return int(start)

    def normalize(self, text: str) -> str:
        """Return the text in the form that is split into pieces."""
        normalized: str = self._tokenizer.normalizer.normalize_str(text)
        return normalized

    def _list_template(self, *words: str) -> tuple[int, ...]:
        ids = []
        for word in words:
            found = self._tokenizer.token_to_id(word)
            encoded = (found,) if found is not None else self.encode(word)
            if len(encoded) != 1:
                raise ConfigError(f"the tokenizer has no single token for {word!r}")
            ids.append(encoded[0])
        return tuple(ids)


class Qwen3TtsArrivingText:
    """Tokenizes text that arrives in parts, with the same tokens as for the whole text."""

    def __init__(self, tokenizer: Qwen3TtsTokenizer) -> None:
        self._tokenizer = tokenizer
        self._waiting = ""
        self._started = False

    def push(self, text: str) -> tuple[int, ...]:
        """Add text and return the tokens that are now final."""
        waiting = self._waiting + text
        waiting = self._tokenizer.normalize(waiting if self._started else waiting.lstrip())
        settled = self._tokenizer.settled(waiting)
        self._waiting = waiting[settled:]
        return self._encode(waiting[:settled])

    def close(self) -> tuple[int, ...]:
        """Complete the text and return its last tokens."""
        rest, self._waiting = self._waiting.rstrip(), ""
        return self._encode(rest)

    def _encode(self, text: str) -> tuple[int, ...]:
        self._started = self._started or bool(text)
        return self._tokenizer.encode(text)


NONE = -1
"""No token or code."""
SPEAKER = -2
"""The speaker vector replaces the code."""
FIRST_REFERENCE_FRAME = -3
"""This minus k stands for frame k of the reference, summed over its codebooks."""


@dataclass(slots=True)
class PromptRows:
    """Input rows by position."""

    text: list[int] = field(default_factory=list)
    """Text token of each row, or NONE."""
    codes: list[int] = field(default_factory=list)
    """Code of each row, NONE, SPEAKER or a reference frame."""
    prompt_len: int = 0
    """Number of prefilled rows; the rows beyond belong to frames."""

    def add(self, text: Sequence[int], codes: Sequence[int]) -> None:
        """Append rows; both sequences have the same length."""
        self.text.extend(text)
        self.codes.extend(codes)

    def end_prompt(self) -> None:
        """End the prefilled part."""
        self.prompt_len = len(self.text)


@dataclass(frozen=True, slots=True)
class Qwen3TtsSpokenText:
    """The spoken text, as tokens."""

    role: tuple[int, ...]
    """`<|im_start|>assistant` and a line feed."""
    body: tuple[int, ...]
    """The text itself; at least one token."""
    complete: bool = True
    """False if more text follows."""
    instruction: tuple[int, ...] = ()
    reference: tuple[int, ...] = ()
    """Transcript of the recording to continue."""


class Qwen3TtsPromptBuilder:
    """Lays out prompts for one checkpoint.

    Args:
        codec: control codes.
        text: special text tokens.
    """

    def __init__(self, codec: Qwen3TtsCodecIds, text: Qwen3TtsTextIds) -> None:
        self._codec = codec
        self._text = text

    def build(
        self,
        spoken: Qwen3TtsSpokenText,
        *,
        language: int | None,
        speaker: int | None,
        reference_frames: int,
        streamed: bool,
    ) -> PromptRows:
        """Return the rows of one request.

        Args:
            spoken: the spoken text. If `complete` is false, the text is streamed, and it must cover
                at least the reference's frames, if there are any.
            language: the language's code; None lets the model detect it.
            speaker: a voice's code, SPEAKER, or None for no speaker.
            reference_frames: number of frames of the recording to continue, 0 for none.
            streamed: add the text to the frames, one token per frame, not before them.
        """
        rows = PromptRows()
        rows.add(spoken.instruction, [NONE] * len(spoken.instruction))
        rows.add(spoken.role, [NONE] * len(spoken.role))
        self._add_tag(rows, language, speaker)
        text = list(spoken.reference + spoken.body)
        if spoken.complete:
            text.append(self._text.eos)
        codes = [self._codec.bos, *_iterate_frames(reference_frames)]
        if streamed:
            self._add_overlaid(rows, text, codes)
        else:
            rows.add(text, [self._codec.pad] * len(text))
            rows.add([self._text.pad] * len(codes), codes)
            rows.end_prompt()
        if spoken.complete:
            rows.add([self._text.pad], [NONE])
        return rows

    def text_rows(self, body: Sequence[int], *, complete: bool) -> PromptRows:
        """Return rows for text that arrived after its request started; `complete` ends the text."""
        rows = PromptRows()
        ending = [self._text.eos, self._text.pad] if complete else []
        rows.add([*body, *ending], [NONE] * (len(body) + len(ending)))
        return rows

    def _add_tag(self, rows: PromptRows, language: int | None, speaker: int | None) -> None:
        codec = self._codec
        if language is None:
            codes = [codec.nothink, codec.think_bos, codec.think_eos]
        else:
            codes = [codec.think, codec.think_bos, language, codec.think_eos]
        if speaker is not None:
            codes.append(speaker)
        codes.append(codec.pad)
        rows.add([self._text.pad] * (len(codes) - 1) + [self._text.bos], codes)

    def _add_overlaid(self, rows: PromptRows, text: list[int], codes: list[int]) -> None:
        """Add text paired with codes; the rest of the text goes to the frames."""
        missing = max(0, len(codes) - len(text))
        paired = text[: len(codes)] + [self._text.pad] * missing
        rows.add(paired, codes)
        rows.end_prompt()
        rest = text[len(codes) :]
        rows.add(rest, [NONE] * len(rest))


def _iterate_frames(count: int) -> Iterator[int]:
    return (FIRST_REFERENCE_FRAME - index for index in range(count))


@dataclass(frozen=True, slots=True)
class Qwen3TtsEncoderInput:
    """A recording of the speaker to follow."""

    samples: NDArray[np.float32]
    """[N] mono at 24 kHz."""
    frames: bool
    """Encode frames too, so that the talker can continue the recording."""


@dataclass(frozen=True, slots=True)
class Qwen3TtsTalkerInput:
    """What to say, and how."""

    spoken: Qwen3TtsSpokenText
    language: int | None
    """The language's code; None lets the model detect it."""
    speaker: int | None
    """The voice's code."""
    follows_recording: bool
    """The speaker's vector, and frames if any, come from the encoder."""
    streamed: bool
    """Add the text to the frames, one token per frame."""
    max_frames: int | None
    """None for the checkpoint's default."""
    sampling: SamplingOptions


@dataclass(frozen=True, slots=True)
class LaterText:
    """Text that arrived after its request started, as tokens."""

    body: tuple[int, ...]
    complete: bool
    """Nothing follows."""
