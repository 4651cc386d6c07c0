"""What the request builder gives the thinker."""

from __future__ import annotations

from dataclasses import dataclass

from cantata_layers.omni.inputs import ThinkerInput


@dataclass(frozen=True, slots=True)
class TextModelInput(ThinkerInput):
    """A conversation as tokens, and what its answer is held to."""

    grammar: bytes | None = None
    """Of `grammar.GrammarCompiler`."""
    is_json: bool = False
    """The whole answer is."""
    grammar_after: tuple[int, ...] = ()
    """Tokens of which any lets the grammar begin, such as the end of a thought; none: it begins at
    once."""
