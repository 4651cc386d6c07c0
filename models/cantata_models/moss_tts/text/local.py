"""The tokenizer of MOSS-TTS-Local."""

from __future__ import annotations

from pathlib import Path

from cantata_layers.qwen_tokenizer import load_qwen_tokenizer


class LocalTokenizer:
    """Implements `prompt.TextTokenizer`: Qwen's byte-level BPE.

    Raises:
        ConfigError: (on construction) a file is missing or damaged.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._tokenizer = load_qwen_tokenizer(checkpoint)

    def template(self, text: str) -> tuple[int, ...]:
        """As `encode`: the template spells no special token."""
        return self.encode(text)

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)
