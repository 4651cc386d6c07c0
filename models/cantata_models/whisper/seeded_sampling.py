"""Samples a text at a temperature, so that the same window with the same options has the same text.

CTranslate2's own sampling takes the random numbers of its thread, whose seed is read only once. So
it decodes greedily here, a few tokens at a time, and gives the scores by which each of them is
drawn; where another one than the likeliest is drawn, it goes on from that.

Letters: V tokens of the vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.model.recognizer import Sound

_TOKENS_AT_ONCE = 8
"""Decoded at a time; those after the first that is not the likeliest are in vain."""


@dataclass(frozen=True, slots=True)
class SampledText:
    """What was drawn."""

    tokens: list[int]
    """Without the one that ends the text."""
    avg_logprob: float
    """Sum of the logarithms of the tokens' probabilities at temperature 1, that of the end too, by
    the number of the text's tokens: as CTranslate2 has it."""
    no_speech_prob: float


def derive_seed(sound: Sound, prompt: Sequence[int]) -> int:
    """63 bits that depend on the sound and on all before its text."""
    digest = hashlib.sha256(np.ascontiguousarray(sound).tobytes())
    digest.update(np.array(prompt, np.int64).tobytes())
    return int.from_bytes(digest.digest()[:8], "little") >> 1


def sample_text(
    model: Any,
    encoded: Any,
    prompt: list[int],
    end: int,
    *,
    most: int,
    temperature: float,
    seed: int,
) -> SampledText:
    """Draw a text.

    Args:
        model: CTranslate2's.
        encoded: what its encoder made of the window.
        prompt: the tokens before the text.
        end: the token that ends it.
        most: tokens after which it ends in any case.
        temperature: more than 0.
        seed: of the random numbers.
    """
    uniforms = np.random.default_rng(seed).random(most)
    tokens: list[int] = []
    logprobs: list[float] = []
    no_speech_prob: float | None = None
    while len(tokens) < most and end not in tokens[-1:]:
        upto = min(len(tokens) + _TOKENS_AT_ONCE, most)
        # Tokens after the marks of the prompt are a text's beginning, and part of the result.
        [result] = model.generate(
            encoded,
            [[*prompt, *tokens]],
            beam_size=1,
            max_length=max(2 * upto, len(prompt) + upto),
            # It would keep the text from ending after what is given.
            suppress_blank=not tokens,
            return_logits_vocab=True,
            return_no_speech_prob=True,
        )
        if no_speech_prob is None:
            no_speech_prob = result.no_speech_prob
        for scores in result.logits[0][len(tokens) :]:
            values = np.array(scores, np.float64)
            token = _draw(values, temperature, uniforms[len(tokens)])
            tokens.append(token)
            logprobs.append(float(_log_softmax(values)[token]))
            if token == end or token != values.argmax() or len(tokens) == most:
                break
    assert no_speech_prob is not None
    text = tokens[:-1] if tokens[-1] == end else tokens
    return SampledText(text, sum(logprobs) / max(1, len(text)), no_speech_prob)


def _draw(scores: NDArray[np.float64], temperature: float, uniform: float) -> int:
    """[V] scores and a number in [0, 1) -> a token."""
    weights = np.exp((scores - scores.max()) / temperature)
    reached = np.cumsum(weights)
    return int(np.searchsorted(reached, uniform * reached[-1], side="right"))


def _log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """[V] -> [V]."""
    shifted = scores - scores.max()
    values: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return values
