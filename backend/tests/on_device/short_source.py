"""Requests that end: random weights do not end a text by themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cantata.contract.model.embedding_source import TalkerPrompt


class ShortSource:
    """A request's source of rows, with fewer frames: random weights do not end a text."""

    def __init__(self, open_: Callable[[Any], Any], max_frames: int, inputs: Any) -> None:
        self._source, self._max_frames = open_(inputs), max_frames

    def prompt(self) -> TalkerPrompt | None:
        prompt: TalkerPrompt | None = self._source.prompt()
        if prompt is None:
            return None
        frames = min(prompt.max_frames, self._max_frames)
        return replace(prompt, max_frames=frames, min_frames=min(prompt.min_frames, frames))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)
