"""Texts as the language model reads them, each between two marks.

Source of the texts that ask for a thought: the publisher's inferencer.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, takewhile
from pathlib import Path

from tokenizers.decoders import ByteLevel

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer

BEGIN, END = "<|im_start|>", "<|im_end|>"
"""Of a text."""
PICTURE_BEGIN, PICTURE_END = "<|vision_start|>", "<|vision_end|>"
"""Of a picture."""
# The first lines of the published texts end with a space.
THINK_BEFORE_DRAWING = (
    "You should first think about the planning process in the mind and then generate the image. \n"
    "The planning process is enclosed within <think> </think> tags, i.e. <think> planning process "
    "here </think> image here"
)
THINK_BEFORE_ANSWERING = (
    "You should first think about the reasoning process in the mind and then provide the user with "
    "the answer. \nThe reasoning process is enclosed within <think> </think> tags, i.e. <think> "
    "reasoning process here </think> answer here"
)


class Texts:
    """The tokenizer of one checkpoint.

    Raises:
        ConfigError: (on construction) it is missing, damaged or of another vocabulary.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.tokenizer = load_qwen_tokenizer(checkpoint)
        self.tokenizer.decoder = ByteLevel()
        self._special = frozenset(self.tokenizer.get_added_tokens_decoder())
        self._where = checkpoint
        self.begin, self.end = self._mark(BEGIN), self._mark(END)
        self.around_picture = self._mark(PICTURE_BEGIN), self._mark(PICTURE_END)

    def tokens(self, text: str) -> tuple[int, ...]:
        """Of a text, between its marks. What it spells of marks is text."""
        return (self.begin, *self._encoded(text), self.end)

    def repeated_text(self, thought: Sequence[int]) -> tuple[int, ...]:
        """A thought's tokens [T] as those of a text: they are spelled, and read as a text is. Marks
        remain what they are; a mark of begin ends the thought, as in the reference."""
        output: list[int] = []
        kept = takewhile(self.begin.__ne__, thought)
        for special, tokens in groupby(kept, self._special.__contains__):
            run = list(tokens)
            output += run if special else self._encoded(self.tokenizer.decode(run))
        return (self.begin, *output, self.end)

    def _encoded(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _mark(self, spelled: str) -> int:
        token: int | None = self.tokenizer.token_to_id(spelled)
        if token is None:
            raise ConfigError(f"{self._where}: the vocabulary has no {spelled}")
        return token
