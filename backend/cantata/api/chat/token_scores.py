"""How probable the tokens of one answer were, as they are told."""

from __future__ import annotations

from collections.abc import Sequence

from cantata.api.chat.answers import ChoiceLogprobs, LikelyToken, ScoredToken
from cantata.contract.data.chat import TokenScore


class TokenScores:
    """Keeps them until they are taken."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, TokenScore]] = []
        """Each with where it begins in the text, in bytes."""
        self._length = 0

    def add(self, scores: Sequence[TokenScore]) -> None:
        """Those of the next tokens."""
        for score in scores:
            self._waiting.append((self._length, score))
            self._length += len(score.token)

    def cut(self, length: int) -> None:
        """Drop what begins behind so many bytes of text: a stop text has ended it there."""
        self._waiting = [(start, score) for start, score in self._waiting if start < length]

    def take(self) -> ChoiceLogprobs | None:
        """Those that were not taken yet; None: there are none."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return None
        return ChoiceLogprobs(content=[_told(score) for _, score in waiting])


def _told(score: TokenScore) -> ScoredToken:
    top = [_likely(token, logprob) for token, logprob in score.top]
    own = _likely(score.token, score.logprob)
    return ScoredToken(token=own.token, logprob=own.logprob, bytes=own.bytes, top_logprobs=top)


def _likely(token: bytes, logprob: float) -> LikelyToken:
    text = token.decode("utf-8", "replace")
    # JSON has no infinity.
    return LikelyToken(token=text, logprob=max(logprob, -9999.0), bytes=list(token))
