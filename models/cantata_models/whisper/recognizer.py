"""Whisper's recognition of windows, on CTranslate2 (github.com/OpenNMT/CTranslate2).

The published decoder pads each window to 30 s, so that a word costs as much as half a minute. Here
the encoder hears the window and at least three seconds of silence, at least ten seconds in all.
With less silence than it was trained with, the decoder may not find the end and say the words again
(measured: 2 of 67 sentences). The alignment with the sound shows that, because such words would
begin after the sound has ended: they are dropped. A result that still looks like a loop is made
again from a longer window. One that is only unlikely is not: hearing it again finds other words,
but no better ones (measured in babble at 0 dB: 82% of the words are wrong either way, in 0.4 of the
time).

Letters: N samples.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cantata.contract.data.transcripts import (
    SPEECH_RATE,
    TokenLogprob,
    Transcript,
    TranscriptUpdate,
)
from cantata.contract.model.log_mel import HOP
from cantata.contract.model.recognizer import Sound, SpeechWindow
from cantata_models.whisper.checkpoint import Vocabulary, convert, read_config
from cantata_models.whisper.decoding import Encoded, TextTask, WhisperDecoder, WrittenText
from cantata_models.whisper.request_builder import MAX_WINDOW_S, WhisperInputs
from cantata_models.whisper.word_times import place_words
from cantata_models.whisper.words import AlignedToken, join_words

_MAX_FRAMES = 3000
_SILENCE_FRAMES = 300
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
"""The first whose result is no loop, or comes a second time, counts; or else the likeliest. Those
that would hear a window exactly as an earlier one are left out: they would repeat its mistakes."""


@dataclass(frozen=True, slots=True)
class _Decoded:
    """What an attempt gave."""

    tokens: list[AlignedToken]
    text: str
    avg_logprob: float
    no_speech_prob: float
    temperature: float

    @property
    def is_loop(self) -> bool:
        """Whether it looks like one."""
        return looks_like_loop(self.text)

    @property
    def is_silence(self) -> bool:
        """Whether nobody speaks: the words are unlikely, or there are none."""
        if not any(character.isalnum() for character in self.text):
            return True
        return self.no_speech_prob > _NO_SPEECH and self.avg_logprob < _MIN_LOGPROB


@dataclass(slots=True)
class _Hearing:
    """A window that is being recognized."""

    inputs: WhisperInputs
    sound: Sound
    attempts: list[Attempt]
    code: str
    """Of the language; empty: not known yet."""
    encoded: Encoded | None = None
    """Of the attempt in progress."""
    results: list[_Decoded] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return len(self.sound) / SPEECH_RATE

    @property
    def attempt(self) -> Attempt | None:
        """The next one; None: there is a result that counts."""
        if self._is_believed or len(self.results) == len(self.attempts):
            return None
        return self.attempts[len(self.results)]

    @property
    def best(self) -> _Decoded:
        """The result that counts."""
        if self._is_believed:
            return self.results[-1]
        return max(self.results, key=lambda result: result.avg_logprob)

    @property
    def _is_believed(self) -> bool:
        """Whether the last result counts. What comes out twice was said, even if it is a loop."""
        if not self.results:
            return False
        *earlier, last = self.results
        return not last.is_loop or last.text in [one.text for one in earlier]


def load_recognizer(checkpoint: Path, device: str, dtype: str) -> WhisperRecognizer:
    """Load a checkpoint in either form.

    Args:
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
    is_exact = device == "cpu" and dtype == "int8"
    return WhisperRecognizer(model, vocabulary, config.mel_bins, is_exact=is_exact)


class WhisperRecognizer:
    """Implements `SpeechRecognizer`.

    Args:
        model: CTranslate2's.
        is_exact: as `WhisperDecoder` has it.
    """

    max_window_s = MAX_WINDOW_S

    def __init__(
        self, model: Any, vocabulary: Vocabulary, mel_bins: int, *, is_exact: bool
    ) -> None:
        self._decoder = WhisperDecoder(model, vocabulary, mel_bins, is_exact=is_exact)
        self._vocabulary = vocabulary
        self.gains_by_batching = is_exact

    def recognize(self, windows: Sequence[SpeechWindow]) -> Sequence[TranscriptUpdate]:
        """The words of each window."""
        hearings = [self._begin(window.inputs, window.samples) for window in windows]
        while tried := [(one, attempt) for one in hearings if (attempt := one.attempt)]:
            tasks = [self._prepare(hearing, attempt) for hearing, attempt in tried]
            texts = self._decoder.write(tasks)
            for (hearing, _), task, written in zip(tried, tasks, texts, strict=True):
                hearing.results.append(self._decode(hearing, task, written))
        return [self._to_update(one) for one in hearings]

    def _begin(self, inputs: WhisperInputs, sound: Sound) -> _Hearing:
        attempts = list_attempts(len(sound), inputs.temperature) if len(sound) else []
        return _Hearing(inputs, sound, attempts, inputs.language or "")

    def _prepare(self, hearing: _Hearing, attempt: Attempt) -> TextTask:
        """Encode the window, unless it is encoded already, and find out what is not known."""
        if hearing.encoded is None or hearing.encoded.frames != attempt.frames:
            hearing.encoded = self._decoder.encode(hearing.sound, attempt.frames)
        inputs = hearing.inputs
        code = hearing.code = hearing.code or self._decoder.find_language(hearing.encoded)
        prompt = self._vocabulary.build_prompt(inputs.prompt, code, translate=inputs.translate)
        return TextTask(hearing.sound, inputs, code, hearing.encoded, attempt.temperature, prompt)

    def _decode(self, hearing: _Hearing, task: TextTask, written: WrittenText) -> _Decoded:
        tokens = self._decoder.align(task, written.tokens)
        kept = self._drop_late(tokens, hearing.seconds)
        text = self._vocabulary.decode([token.number for token in kept]).strip()
        score, no_speech_prob = written.avg_logprob, written.no_speech_prob
        return _Decoded(kept, text, score, no_speech_prob, task.temperature)

    def _to_update(self, hearing: _Hearing) -> TranscriptUpdate:
        if not len(hearing.sound):
            return TranscriptUpdate(np.zeros(0, np.int32), Transcript(""))
        inputs, best, vocabulary = hearing.inputs, hearing.best, self._vocabulary
        tokens = [] if best.is_silence else best.tokens
        code = "en" if inputs.translate else hearing.code
        wanted, seconds = inputs.timestamps, hearing.seconds
        words = join_words(tokens, vocabulary, code, seconds) if wanted else ()
        transcript = Transcript(
            "" if best.is_silence else best.text,
            language=vocabulary.tag(code),
            words=place_words(words, hearing.sound),
            logprobs=self._list_logprobs(tokens) if wanted else (),
            avg_logprob=best.avg_logprob,
            no_speech_prob=best.no_speech_prob,
            temperature=best.temperature,
            seconds=seconds,
        )
        numbers = np.array([token.number for token in tokens], np.int32)
        return TranscriptUpdate(numbers, transcript)

    def _drop_late(self, tokens: list[AlignedToken], seconds: float) -> list[AlignedToken]:
        """The tokens before the first one that would begin a word after the sound's end."""
        for number, token in enumerate(tokens):
            if token.start_s >= seconds:
                text = self._vocabulary.decode([token.number])
                if any(character.isalnum() for character in text):
                    return tokens[:number]
        return tokens

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
