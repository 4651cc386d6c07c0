"""What CTranslate2's model makes of windows: encoded sound, texts, and their tokens' times.

Texts are decoded together where that changes nothing. Each step of the decoder reads all of its
weights, so four texts at once take 0.4 of the time that they take one after the other.

The same window with the same options has the same text, at every temperature. CTranslate2's own
sampling takes the random numbers of its thread, whose seed is read only once. So it decodes
greedily here, a few tokens at a time, and gives the scores by which each of them is drawn; where
another one than the likeliest is drawn, it goes on from that.

Letters: N samples, F mel frames of 10 ms, M mel bins, T tokens, V tokens of the vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.transcripts import SPEECH_RATE
from cantata.contract.model.log_mel import HOP, log_mel
from cantata.contract.model.recognizer import Sound
from cantata_models.whisper.checkpoint import Vocabulary
from cantata_models.whisper.request_builder import WhisperInputs
from cantata_models.whisper.words import AlignedToken, align_tokens

_TOKENS_AT_ONCE = 8
"""Decoded at a time; those after the first that is not the likeliest are in vain."""


@dataclass(frozen=True, slots=True)
class SampledText:
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
    max_tokens: int,
    temperature: float,
    seed: int,
) -> SampledText:
    """Draw a text.

    Args:
        model: CTranslate2's.
        max_tokens: tokens after which it ends in any case.
        temperature: more than 0.
    """
    uniforms = np.random.default_rng(seed).random(max_tokens)
    tokens: list[int] = []
    logprobs: list[float] = []
    no_speech_prob: float | None = None
    while len(tokens) < max_tokens and end not in tokens[-1:]:
        upto = min(len(tokens) + _TOKENS_AT_ONCE, max_tokens)
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
            if token == end or token != values.argmax() or len(tokens) == max_tokens:
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


_POSITIONS = 448
"""Of the decoder."""
_TOKENS_PER_S = 9
"""Fast English has about six."""
_FOREIGN_TOKENS_PER_S = 30
"""Letters of other scripts are up to three tokens each."""
_SPARE_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the encoder made of a window."""

    frames: int
    """F."""
    output: Any
    """CTranslate2's."""


@dataclass(frozen=True, slots=True)
class TextTask:
    """A window that is to be written down."""

    sound: Sound
    """[N]."""
    inputs: WhisperInputs
    code: str
    """Of the language."""
    encoded: Encoded
    temperature: float
    prompt: list[int]
    """Tokens before the text."""

    @property
    def max_tokens(self) -> int:
        """Tokens that its text may have, as fast as anybody speaks."""
        is_english = self.code == "en" or self.inputs.translate
        pace = _TOKENS_PER_S if is_english else _FOREIGN_TOKENS_PER_S
        return int(len(self.sound) / SPEECH_RATE * pace) + _SPARE_TOKENS

    @property
    def max_length(self) -> int:
        """The same for CTranslate2."""
        return min(_POSITIONS, max(2 * self.max_tokens, len(self.prompt) + self.max_tokens))

    @property
    def room(self) -> int:
        """Tokens that CTranslate2 gives the text: half of `max_length` at most, and what the prompt
        leaves."""
        return min(self.max_length // 2, self.max_length - len(self.prompt))

    @property
    def kind(self) -> tuple[int, ...]:
        """What tasks that are decoded together have in common. The end of a beam search depends on
        its longest text, too."""
        beam_size = self.inputs.beam_size
        limit = self.max_length if beam_size > 1 else 0
        return self.encoded.frames, len(self.prompt), beam_size, limit


@dataclass(frozen=True, slots=True)
class WrittenText:
    """What was decoded."""

    tokens: list[int]
    """[T], without the one that ends the text."""
    avg_logprob: float
    no_speech_prob: float


class WhisperDecoder:
    """One loaded model.

    Args:
        model: CTranslate2's.
        mel_bins: M.
        is_exact: whether texts that are decoded together are, bit for bit, those decoded alone. It
            multiplies integers, and on a CPU: sums of floats depend on how many there are.
    """

    def __init__(
        self, model: Any, vocabulary: Vocabulary, mel_bins: int, *, is_exact: bool
    ) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._mel_bins = mel_bins
        self._is_exact = is_exact

    def encode(self, sound: Sound, frames: int) -> Encoded:
        """A window of F frames: the sound, and silence after it."""
        from ctranslate2 import StorageView

        padded = np.zeros(frames * HOP, np.float32)
        padded[: len(sound)] = sound[: len(padded)]
        mels: NDArray[np.float32] = np.ascontiguousarray(log_mel(padded, self._mel_bins)[None])
        return Encoded(frames, self._model.encode(StorageView.from_array(mels), to_cpu=False))

    def find_language(self, encoded: Encoded) -> str:
        """The code of the language that is spoken."""
        if not self._vocabulary.is_multilingual:
            return "en"
        [languages] = self._model.detect_language(encoded.output)
        mark: str = languages[0][0]
        return mark.strip("<|>")

    def write(self, tasks: Sequence[TextTask]) -> list[WrittenText]:
        """The texts of windows, each as if it were the only one."""
        written: dict[int, WrittenText] = {}
        for group in self._group(tasks):
            texts = self._write_together([tasks[number] for number in group])
            written.update(zip(group, texts, strict=True))
        return [written[number] for number in range(len(tasks))]

    def align(self, task: TextTask, tokens: list[int]) -> list[AlignedToken]:
        """Times of a text's tokens, [T]. Texts of different lengths are not aligned together: the
        shorter ones would get other times."""
        if not tokens:
            return []
        # CTranslate2 adds the mark of plain text itself.
        start = self._vocabulary.build_start(task.code, translate=task.inputs.translate)[:-1]
        [found] = self._model.align(task.encoded.output, start, [tokens], task.encoded.frames)
        return align_tokens(tokens, found.alignments, found.text_token_probs)

    def _group(self, tasks: Sequence[TextTask]) -> Iterator[list[int]]:
        """Numbers of the tasks that are decoded together."""
        drawn = [number for number, task in enumerate(tasks) if task.temperature > 0]
        others = [number for number, task in enumerate(tasks) if task.temperature == 0]
        yield from ([number] for number in drawn)
        if not self._is_exact:
            yield from ([number] for number in others)
            return
        others.sort(key=lambda number: tasks[number].kind)
        for _, group in groupby(others, key=lambda number: tasks[number].kind):
            yield list(group)

    def _write_together(self, tasks: Sequence[TextTask]) -> list[WrittenText]:
        if tasks[0].temperature > 0:
            return [self._draw(task) for task in tasks]
        max_length = max(task.max_length for task in tasks)
        results = self._model.generate(
            _join_encoded([task.encoded for task in tasks]),
            [task.prompt for task in tasks],
            beam_size=tasks[0].inputs.beam_size,
            max_length=max_length,
            return_scores=True,
            return_no_speech_prob=True,
        )
        return [
            self._to_text(result)
            if task.max_length == max_length or len(result.sequences_ids[0]) < task.room
            else self._write_together([task])[0]  # a loop that others gave more room
            for task, result in zip(tasks, results, strict=True)
        ]

    def _to_text(self, result: Any) -> WrittenText:
        tokens = [token for token in result.sequences_ids[0] if token < self._vocabulary.end]
        return WrittenText(tokens, result.scores[0], result.no_speech_prob)

    def _draw(self, task: TextTask) -> WrittenText:
        drawn = sample_text(
            self._model,
            task.encoded.output,
            task.prompt,
            self._vocabulary.end,
            max_tokens=min(task.max_tokens, _POSITIONS // 2, _POSITIONS - len(task.prompt)),
            temperature=task.temperature,
            seed=derive_seed(task.sound, task.prompt),
        )
        tokens = [token for token in drawn.tokens if token < self._vocabulary.end]
        return WrittenText(tokens, drawn.avg_logprob, drawn.no_speech_prob)


def _join_encoded(encoded: Sequence[Encoded]) -> Any:
    """The output of the encoder for several windows of the same length."""
    if len(encoded) == 1:
        return encoded[0].output
    from ctranslate2 import StorageView

    joined = np.concatenate([np.asarray(one.output) for one in encoded])
    return StorageView.from_array(joined)
