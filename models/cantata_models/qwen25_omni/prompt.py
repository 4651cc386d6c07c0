"""The tokens around a turn. config.json does not say them; the tokenizer knows them by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError
from cantata_layers.omni.messages import PromptMessage, PromptRole, Text
from cantata_layers.omni.positions import TimeScale
from cantata_layers.omni.preprocess import Preprocessor, SoundRules
from cantata_layers.omni.preprocessor_config import load_preprocessor_config
from cantata_layers.omni.prompt import DialogueIds, Prompt, PromptLayout
from cantata_models.qwen25_omni.config import Qwen25OmniThinkerConfig
from cantata_models.qwen25_omni.rows import BEHIND_PROMPT


@dataclass(frozen=True, slots=True)
class TurnIds:
    """A checkpoint's token ids of turns."""

    start: int
    end: int
    """Ends an answer too."""


def turn_ids(tokenizer: Tokenizer, checkpoint: Path) -> TurnIds:
    """Look them up. Raises ConfigError: the tokenizer lacks one."""
    names = ("<|im_start|>", "<|im_end|>")
    start, end = (tokenizer.token_to_id(name) for name in names)
    if start is None or end is None:
        raise ConfigError(f"{checkpoint}: tokenizer_config.json lacks {' or '.join(names)}")
    return TurnIds(start, end)


SYSTEM = PromptMessage(PromptRole.SYSTEM, (Text("You are a helpful assistant."),))
"""In front of a dialogue that has no system prompt."""
SILENCE = 2
"""Mel frames beside a sound that hear it. The reference fills every sound up to 300 s; more than
these change nothing."""


class Qwen25OmniPromptBuilder:
    """Builds the prompts of one checkpoint.

    Args:
        config: of the checkpoint, as the next.

    Raises:
        ConfigError: a file is missing, or a value is wrong or not served.
    """

    def __init__(
        self, checkpoint: Path, config: Qwen25OmniThinkerConfig, tokenizer: Tokenizer
    ) -> None:
        ids = turn_ids(tokenizer, checkpoint)
        self._layout = PromptLayout(
            tokenizer,
            DialogueIds(ids.start, ids.end, config.media),
            Preprocessor(
                load_preprocessor_config(checkpoint), config.vision, SoundRules(sound_rows, SILENCE)
            ),
            TimeScale(
                config.positions_per_second,
                whole=True,
                film_block=config.positions_per_second * config.seconds_per_block,
            ),
        )

    def build(self, messages: Sequence[PromptMessage]) -> Prompt:
        """As `PromptLayout.build`, with a system prompt."""
        if messages and messages[0].role is not PromptRole.SYSTEM:
            messages = [SYSTEM, *messages]
        return self._layout.build(messages)

    def spoken_positions(self, prompt: Prompt) -> NDArray[np.float32]:
        """[3, P + 2]: of a prompt and of the two positions with which its speech begins."""
        return self._layout.positions(len(prompt.tokens) + BEHIND_PROMPT, prompt.placements)


def sound_rows(frames: int) -> int:
    """Rows that the audio encoder makes of so many mel frames: a convolution and a mean halve them,
    the one rounds up, the other down."""
    return (-(-frames // 2)) // 2
