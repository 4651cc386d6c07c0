"""The layout of text tokens and codec codes in a talker's prompt, as plain numbers.

An input row is the sum of a projected text token and an embedded code; either may be missing. Rows
beyond the prompt hold the text that is added to the frames, one token per frame; the last row
repeats. In every mode the layout is

    instruction | role | tag, speaker                                | spoken text
    text        | text | text pad ..., text bos + codes, codec pad   | see `PromptBuilder`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cantata_models.qwen3_tts.config import CodecIds, TextIds

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
class SpokenText:
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


class PromptBuilder:
    """Lays out prompts for one checkpoint.

    Args:
        codec: control codes.
        text: special text tokens.
    """

    def __init__(self, codec: CodecIds, text: TextIds) -> None:
        self._codec = codec
        self._text = text

    def build(
        self,
        spoken: SpokenText,
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
        codes = [self._codec.bos, *_frames(reference_frames)]
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


def _frames(count: int) -> Iterator[int]:
    return (FIRST_REFERENCE_FRAME - index for index in range(count))
