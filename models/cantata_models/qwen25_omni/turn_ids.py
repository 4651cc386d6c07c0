"""The tokens around a turn. config.json does not say them; the tokenizer knows them by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TurnIds:
    """Of a checkpoint."""

    start: int
    end: int
    """Ends an answer too."""


def turn_ids(tokenizer: Tokenizer, checkpoint: Path) -> TurnIds:
    """Look them up.

    Raises:
        ConfigError: the tokenizer lacks one.
    """
    names = ("<|im_start|>", "<|im_end|>")
    start, end = (tokenizer.token_to_id(name) for name in names)
    if start is None or end is None:
        raise ConfigError(f"{checkpoint}: tokenizer_config.json lacks {' or '.join(names)}")
    return TurnIds(start, end)
