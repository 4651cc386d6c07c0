"""The prompt that asks the thinker for a transcript.

In ChatML: a system's turn with what helps to spell, which may be empty, a user's with the sound,
and the beginning of the answer. If the language is known, the answer begins with it.

Letters: P tokens, M of them of the sound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.omni.inputs import SoundFeatures
from cantata_models.qwen3_asr.config import SpecialTokens


@dataclass(frozen=True, slots=True)
class AlignerInput:
    """The sound whose words are to get their times."""

    features: SoundFeatures
    seconds: float
    """Of the sound, without what it was filled up with."""
    language: str
    """BCP 47 tag; empty: the thinker names it."""
    is_wanted: bool
    """Whether times are wanted; otherwise the transcript has none."""


ASR_TEXT = "<asr_text>"
MAX_CONTEXT = 2048
"""Tokens of the text that helps to spell."""


@dataclass(frozen=True, slots=True)
class TranscriptionPrompt:
    """Tokens with a sound among them."""

    tokens: NDArray[np.int32]
    """[P]"""
    sound: NDArray[np.int32]
    """[M]: where the sound's rows belong."""


class TranscriptionPrompts:
    """Lays out the prompts of one checkpoint."""

    def __init__(self, tokenizer: Tokenizer, ids: SpecialTokens) -> None:
        self._tokenizer, self._ids = tokenizer, ids
        self._line_feed = self._encode("\n")

    def build(self, rows: int, context: str, language: str | None) -> TranscriptionPrompt:
        """Lay out a prompt.

        Args:
            rows: M.
            context: names and words that may occur. Control tokens in it have no effect.
            language: its name; None: the thinker finds it out, and writes it first.

        Raises:
            InvalidRequest: the context is too long.
        """
        ids = self._ids
        # Alone of the control tokens, this one is a word like others, and no text needs it.
        system = [
            token for part in f"system\n{context}".split(ASR_TEXT) for token in self._encode(part)
        ]
        if len(system) > MAX_CONTEXT:
            raise InvalidRequest(
                f"the prompt has {len(system)} tokens; valid: up to {MAX_CONTEXT}", "prompt"
            )
        before = [
            *(ids.im_start, *system, ids.im_end, *self._line_feed),
            *(ids.im_start, *self._encode("user\n"), ids.audio_start),
        ]
        behind = [
            *(ids.audio_end, ids.im_end, *self._line_feed),
            *(ids.im_start, *self._encode("assistant\n")),
        ]
        if language is not None:
            behind += self._list_answer_begin(language)
        tokens = [*before, *[ids.audio_pad] * rows, *behind]
        sound = np.arange(len(before), len(before) + rows, dtype=np.int32)
        return TranscriptionPrompt(np.array(tokens, np.int32), sound)

    def _list_answer_begin(self, language: str) -> list[int]:
        return [*self._encode(f"language {language}"), self._ids.asr_text]

    def _encode(self, text: str) -> list[int]:
        """Tokens, none of them special."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)
