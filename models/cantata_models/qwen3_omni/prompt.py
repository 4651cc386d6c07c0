"""A dialogue as the thinker's tokens, and what the talker hears of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError
from cantata_layers.omni.inputs import Film
from cantata_layers.omni.messages import PromptMessage
from cantata_layers.omni.positions import TimeScale
from cantata_layers.omni.preprocess import Preprocessor
from cantata_layers.omni.prompt import DialogueIds, Prompt, PromptLayout
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_omni.config import OmniConfig
from cantata_models.qwen3_omni.talker_rows import ANSWER_ROWS


@dataclass(frozen=True, slots=True)
class HeardPrompt:
    """The user's turns, as the talker hears them."""

    tokens: NDArray[np.int32]
    """[P]"""
    media: NDArray[np.int32]
    """[M]: where in `tokens` rows of media are."""
    sources: NDArray[np.int32]
    """[M]: where these rows are in the thinker's prompt."""
    positions: NDArray[np.float32]
    """[3, P + `ANSWER_ROWS`]: with the beginning of the answer."""


class Qwen3OmniPromptBuilder:
    """Builds the prompts of one checkpoint.

    Args:
        checkpoint: its folder.
        config: of the checkpoint, as the next.
        preprocessor: makes features.

    Raises:
        ConfigError: the tokenizer is missing, damaged, or another checkpoint's.
    """

    def __init__(self, checkpoint: Path, config: OmniConfig, preprocessor: Preprocessor) -> None:
        self._config = config
        text, thinker = config.text, config.thinker
        self._layout = PromptLayout(
            load_qwen_tokenizer(checkpoint),
            DialogueIds(text.im_start, text.im_end, thinker.media),
            preprocessor,
            TimeScale(thinker.positions_per_second),
        )
        for role, token in text.roles.items():
            found = self._layout.encode(f"{role}\n")
            if len(found) != 2 or found[0] != token:
                raise ConfigError(
                    f"{checkpoint}: {role!r} and a line feed must be token {token} and another one "
                    f"for the tokenizer, not {found}"
                )
        im_start, assistant, line_feed = self._layout.answer_begin
        self.role = (im_start, assistant, line_feed)
        """The tokens that begin an answer."""

    def build(self, messages: Sequence[PromptMessage]) -> Prompt:
        return self._layout.build(messages)

    def select_user_turns(self, prompt: Prompt) -> HeardPrompt:
        """Return what the talker hears of a prompt."""
        ids = self._config.text
        starts = np.flatnonzero(prompt.tokens == ids.im_start)
        roles = prompt.tokens[np.minimum(starts + 1, len(prompt.tokens) - 1)]
        turns = np.repeat(roles, np.diff([*starts, len(prompt.tokens)]))
        places = np.flatnonzero(turns == ids.user)
        tokens = prompt.tokens[places]
        is_media = np.isin(tokens, list(self._config.thinker.media.pads))
        # The reference does not tell its talker that a video has sound: a film counts like text.
        placements = [
            replace(placement, offset=int(np.searchsorted(places, placement.offset)))
            for placement in prompt.placements
            if not isinstance(placement.media, Film)
        ]
        return HeardPrompt(
            tokens=tokens,
            media=np.flatnonzero(is_media).astype(np.int32),
            sources=places[is_media].astype(np.int32),
            positions=self._layout.positions(len(tokens) + ANSWER_ROWS, placements),
        )
