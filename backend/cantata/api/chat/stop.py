"""Stop texts: where an answer ends, however it was cut into pieces on its way."""

from __future__ import annotations

from collections.abc import Sequence


class StopFilter:
    """Passes text on up to the first stop text, and holds back what may be the beginning of one.

    What leaves does not depend on how the text is cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stopped = False
        """A stop text has come; nothing leaves any more."""
        self._stops = stops
        self._held = ""

    def feed(self, text: str) -> str:
        """Add text; returns what may leave now."""
        if self.stopped:
            return ""
        text = self._held + text
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            # The one that is complete first, as if the text came character by character.
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        cut = len(text) - max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[cut:]
        return text[:cut]

    def finish(self) -> str:
        """The text has ended: what was held back is no stop text."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text may begin a stop text."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
