"""Whisper's recognition of windows, on CTranslate2 (github.com/OpenNMT/CTranslate2).

The published decoder pads each window to 30 s, so that a word costs as much as half a minute. Here
the encoder hears the window and at least three seconds of silence, at least ten seconds in all.
With less silence than it was trained with, the decoder may not find the end and say the words again
(measured: 2 of 67 sentences). The alignment with the sound shows that, because such words would
begin after the sound has ended: they are dropped. A result that still looks like a loop is made
again from a longer window.

Letters: N samples, F mel frames of 10 ms, M mel bins, T tokens.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.transcripts import (
    SPEECH_RATE,
    TokenLogprob,
    Transcript,
    TranscriptUpdate,
)
from cantata.contract.model.log_mel import HOP, log_mel
from cantata.contract.model.recognizer import Sound, SpeechWindow
from cantata_models.whisper.checkpoint import convert, read_config
from cantata_models.whisper.inputs import WhisperInputs
from cantata_models.whisper.request_builder import MAX_WINDOW_S
from cantata_models.whisper.seeded_sampling import derive_seed, sample_text
from cantata_models.whisper.vocabulary import Vocabulary
from cantata_models.whisper.word_placing import place_words
from cantata_models.whisper.word_times import AlignedToken, align_tokens, join_words

_MAX_FRAMES = 3000
_SILENCE_FRAMES = 300
_POSITIONS = 448
"""Of the decoder."""
_TOKENS_PER_S = 9
"""Fast English has about six."""
_FOREIGN_TOKENS_PER_S = 30
"""Letters of other scripts are up to three tokens each."""
_SPARE_TOKENS = 24
_MAX_COMPRESSION = 2.4
_MIN_LOGPROB = -1.0
_NO_SPEECH = 0.6
_REPEATED_WORDS = 4
"""So many words, said twice, look like a loop."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to decode a window."""

    frames: int
    """The shortest window that the encoder gets."""
    temperature: float


ATTEMPTS = (Attempt(1000, 0.0), Attempt(2000, 0.0), Attempt(_MAX_FRAMES, 0.0), Attempt(2000, 0.4))
"""The first whose result is good counts, or comes a second time; or else the likeliest. Those that
would hear a window exactly as an earlier one are left out: they would only repeat its mistakes."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """What the encoder made of a window."""

    frames: int
    """F."""
    output: Any
    """CTranslate2's."""


@dataclass(frozen=True, slots=True)
class _Decoded:
    """What an attempt gave."""

    tokens: list[AlignedToken]
    text: str
    avg_logprob: float
    no_speech_prob: float
    temperature: float

    @property
    def is_good(self) -> bool:
        """Whether it is neither unlikely nor a loop."""
        return self.avg_logprob >= _MIN_LOGPROB and not looks_like_loop(self.text)


def load_recognizer(checkpoint: Path, device: str, dtype: str) -> WhisperRecognizer:
    """Load a checkpoint in either form.

    Args:
        checkpoint: its folder.
        device: `cpu` or `cuda`.
        dtype: in which CTranslate2 multiplies.

    Raises:
        ConfigError: the folder is no checkpoint of this model.
    """
    from ctranslate2.models import Whisper

    config = read_config(checkpoint)
    converted = convert(checkpoint)
    model = Whisper(
        str(converted), device=device, compute_type=dtype, inter_threads=1, intra_threads=1
    )
    vocabulary = Vocabulary(
        checkpoint if (checkpoint / "tokenizer.json").is_file() else converted,
        is_multilingual=config.is_multilingual,
    )
    return WhisperRecognizer(model, vocabulary, config.mel_bins)


class WhisperRecognizer:
    """Implements `SpeechRecognizer`.

    Args:
        model: CTranslate2's.
        vocabulary: its tokens.
        mel_bins: M.
    """

    max_window_s = MAX_WINDOW_S

    def __init__(self, model: Any, vocabulary: Vocabulary, mel_bins: int) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._mel_bins = mel_bins

    def recognize(self, windows: Sequence[SpeechWindow]) -> Sequence[TranscriptUpdate]:
        """The words of each window."""
        return [self._recognize(window.inputs, window.samples) for window in windows]

    def _recognize(self, inputs: WhisperInputs, sound: Sound) -> TranscriptUpdate:
        if not len(sound):
            return TranscriptUpdate(np.zeros(0, np.int32), Transcript(""))
        attempts = list_attempts(len(sound), inputs.temperature)
        encoded = self._encode(sound, attempts[0].frames)
        code = inputs.language or self._find_language(encoded)
        results: list[_Decoded] = []
        for attempt in attempts:
            if attempt.frames != encoded.frames:
                encoded = self._encode(sound, attempt.frames)
            results.append(self._attempt(inputs, sound, code, attempt, encoded))
            # What comes out twice was said, even if it repeats itself.
            if results[-1].is_good or results[-1].text in [one.text for one in results[:-1]]:
                break
        best = results[-1] if len(results) < len(attempts) else _choose_likeliest(results)
        is_silent = best.no_speech_prob > _NO_SPEECH and best.avg_logprob < _MIN_LOGPROB
        written = "en" if inputs.translate else code
        return self._to_update(inputs, written, best, sound, is_silent=is_silent)

    def _to_update(
        self, inputs: WhisperInputs, code: str, best: _Decoded, sound: Sound, *, is_silent: bool
    ) -> TranscriptUpdate:
        tokens = [] if is_silent else best.tokens
        text = "" if is_silent else best.text
        vocabulary, wanted = self._vocabulary, inputs.timestamps
        seconds = len(sound) / SPEECH_RATE
        words = join_words(tokens, vocabulary, code, seconds) if wanted else ()
        transcript = Transcript(
            text,
            language=vocabulary.tag(code),
            words=place_words(words, sound),
            logprobs=self._list_logprobs(tokens) if wanted else (),
            avg_logprob=best.avg_logprob,
            no_speech_prob=best.no_speech_prob,
            temperature=best.temperature,
            seconds=seconds,
        )
        numbers = np.array([token.number for token in tokens], np.int32)
        return TranscriptUpdate(numbers, transcript)

    def _attempt(
        self,
        inputs: WhisperInputs,
        sound: Sound,
        code: str,
        attempt: Attempt,
        encoded: _Encoded,
    ) -> _Decoded:
        vocabulary = self._vocabulary
        seconds = len(sound) / SPEECH_RATE
        prompt = vocabulary.build_prompt(inputs.prompt, code, translate=inputs.translate)
        is_english = code == "en" or inputs.translate
        pace = _TOKENS_PER_S if is_english else _FOREIGN_TOKENS_PER_S
        most = int(seconds * pace) + _SPARE_TOKENS
        if attempt.temperature > 0:
            drawn = sample_text(
                self._model,
                encoded.output,
                prompt,
                vocabulary.end,
                most=min(most, _POSITIONS // 2, _POSITIONS - len(prompt)),
                temperature=attempt.temperature,
                seed=derive_seed(sound, prompt),
            )
            numbers, score, no_speech = drawn.tokens, drawn.avg_logprob, drawn.no_speech_prob
        else:
            [result] = self._model.generate(
                encoded.output,
                [prompt],
                beam_size=inputs.beam_size,
                # CTranslate2 gives the text half of it at most, and what the prompt leaves.
                max_length=min(_POSITIONS, max(2 * most, len(prompt) + most)),
                return_scores=True,
                return_no_speech_prob=True,
            )
            numbers, score = result.sequences_ids[0], result.scores[0]
            no_speech = result.no_speech_prob
        written = [token for token in numbers if token < vocabulary.end]
        tokens = self._align(encoded, code, inputs, written)
        kept = self._drop_late(tokens, seconds)
        text = vocabulary.decode([token.number for token in kept]).strip()
        return _Decoded(kept, text, score, no_speech, attempt.temperature)

    def _align(
        self, encoded: _Encoded, code: str, inputs: WhisperInputs, numbers: list[int]
    ) -> list[AlignedToken]:
        if not numbers:
            return []
        # CTranslate2 adds the mark of plain text itself.
        start = self._vocabulary.build_start(code, translate=inputs.translate)[:-1]
        [found] = self._model.align(encoded.output, start, [numbers], encoded.frames)
        return align_tokens(numbers, found.alignments, found.text_token_probs)

    def _drop_late(self, tokens: list[AlignedToken], seconds: float) -> list[AlignedToken]:
        """The tokens before the first one that would begin a word after the sound's end."""
        for number, token in enumerate(tokens):
            if token.start_s >= seconds:
                text = self._vocabulary.decode([token.number])
                if any(character.isalnum() for character in text):
                    return tokens[:number]
        return tokens

    def _encode(self, sound: Sound, frames: int) -> _Encoded:
        from ctranslate2 import StorageView

        padded = np.zeros(frames * HOP, np.float32)
        padded[: len(sound)] = sound[: len(padded)]
        mels: NDArray[np.float32] = np.ascontiguousarray(log_mel(padded, self._mel_bins)[None])
        return _Encoded(frames, self._model.encode(StorageView.from_array(mels), to_cpu=False))

    def _find_language(self, encoded: _Encoded) -> str:
        if not self._vocabulary.is_multilingual:
            return "en"
        [languages] = self._model.detect_language(encoded.output)
        mark: str = languages[0][0]
        return mark.strip("<|>")

    def _list_logprobs(self, tokens: Sequence[AlignedToken]) -> tuple[TokenLogprob, ...]:
        return tuple(
            TokenLogprob(
                self._vocabulary.decode([token.number]),
                tuple(self._vocabulary.to_bytes(token.number)),
                math.log(max(token.probability, 1e-10)),
            )
            for token in tokens
        )


def list_attempts(samples: int, temperature: float | None) -> list[Attempt]:
    """The attempts at a window, each with the frames that the encoder gets.

    Args:
        samples: N.
        temperature: of the only attempt; None: those of `ATTEMPTS` that differ.
    """
    attempts: Sequence[Attempt] = ATTEMPTS
    if temperature is not None:
        attempts = [Attempt(_MAX_FRAMES // 2, temperature)]
    own = math.ceil(samples / HOP) + _SILENCE_FRAMES
    own += own % 2
    exact = [Attempt(min(_MAX_FRAMES, max(one.frames, own)), one.temperature) for one in attempts]
    return list(dict.fromkeys(exact))


def looks_like_loop(text: str) -> bool:
    """Whether a text repeats itself as a decoder does that has lost its place."""
    data = text.encode()
    if len(data) / len(zlib.compress(data)) > _MAX_COMPRESSION:
        return True
    words = re.findall(r"\w+", text.lower())
    runs = [tuple(words[i : i + _REPEATED_WORDS]) for i in range(len(words) - _REPEATED_WORDS + 1)]
    return len(set(runs)) < len(runs)


def _choose_likeliest(results: Sequence[_Decoded]) -> _Decoded:
    """The likeliest of those that are no loop, or of all."""
    sane = [result for result in results if not looks_like_loop(result.text)]
    return max(sane or results, key=lambda result: result.avg_logprob)
