"""Voices read sentences, recognizers write them down, and a table comes out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

import jiwer

from cantata.config.plugins import list_embedded_models
from cantata_bench.server import running_server
from cantata_bench.tables import table
from cantata_bench.transcription.recognizers import (
    RecognizedText,
    Recognizer,
    ServerRecognizer,
    list_peers,
)
from cantata_bench.transcription.recordings import (
    RATE_HZ,
    ReadSentence,
    add_babble,
    join_without_break,
    over_telephone,
    read_aloud,
    read_by_espeak,
)
from cantata_bench.voice_quality.measures import SPELLINGS, EvalSentence

CLOSE_S = 0.08
"""A word's time is right within so many seconds."""
_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen", "twenty"),
)
_SHORT_FORMS = {"'re": " are", "'m": " am", "'ll": " will", "'ve": " have"}


@dataclass(frozen=True, slots=True)
class WrittenWords:
    """What a recognizer wrote of one recording."""

    words: tuple[str, ...]
    """Without punctuation and variants of spelling."""
    errors: int


@dataclass(frozen=True, slots=True)
class Scores:
    """One recognizer under one condition."""

    recognizer: str
    condition: str
    words: int
    errors: int
    seconds: float
    """Of sound."""
    cpu_s: float
    timed: int
    """Words whose beginnings are known to both sides."""
    close: int
    """Of these, within `CLOSE_S`."""
    written: tuple[WrittenWords, ...] = ()
    """Of each recording."""

    @property
    def wer(self) -> float:
        """Word error rate in percent."""
        return 100 * self.errors / max(self.words, 1)

    @property
    def rtf(self) -> float:
        """CPU seconds for a second of sound."""
        return self.cpu_s / max(self.seconds, 1e-9)


def measure(
    voices: Sequence[str],
    sentences: Sequence[EvalSentence],
    long_minutes: float,
    folder: Path,
    tell: Callable[[str], None],
) -> list[Scores]:
    """Serve the voices and the recognizer, and compare it with what is installed.

    Args:
        voices: of models that ship.
        sentences: at least one.
        long_minutes: length of a recording without a break; 0: none.
        folder: gets the server's log.
        tell: gets a line for each row.

    Raises:
        RuntimeError: the server did not start.
    """
    found = []
    options = [option for model in list_embedded_models() for option in ("--model", model)]
    with running_server(folder / "server.log", options=options) as server:
        spoken = {voice: _read_all(server.url, voice, sentences) for voice in voices}
        espeak = [one for s in sentences if (one := read_by_espeak(s.text)) is not None]
        if espeak:
            spoken[espeak[0].voice] = espeak
        recognizers: list[Recognizer] = [
            ServerRecognizer(server.url, server.pid),
            *list_peers(),
        ]
        for condition, recordings in _list_conditions(spoken, long_minutes):
            for recognizer in recognizers:
                found.append(_score(recognizer, condition, recordings))
                tell(_format_row(found[-1]))
    return found


def count_errors(text: str, heard: str) -> tuple[int, int]:
    """Words in the text, and wrong, missing and added ones in what was heard. Loops count in full:
    they are what a recognizer must not do."""
    wanted, got = bare_words(text), bare_words(heard)
    if not got:
        return len(wanted), len(wanted)
    return len(wanted), round(len(wanted) * float(jiwer.wer(" ".join(wanted), " ".join(got))))


def bare_words(text: str) -> list[str]:
    """Lower-case words without punctuation; small numbers are words, short forms are spelled out,
    and variants of a spelling are one word."""
    plain = text.lower().replace("\u2019", "'")
    for short, long in _SHORT_FORMS.items():
        plain = plain.replace(short, long)
    words = re.sub(r"[^a-z0-9 ]", " ", plain.replace("'", "").replace("-", " ")).split()
    words = [
        _NUMBERS[int(word)] if word.isdigit() and int(word) < len(_NUMBERS) else word
        for word in words
    ]
    return [SPELLINGS.get(word, word) for word in words]


def compare_times(spoken: ReadSentence, heard: RecognizedText) -> tuple[int, int]:
    """Words that both sides have a time for, and how many of them agree within `CLOSE_S`."""
    own = spoken.text.split()
    if len(own) != len(spoken.word_starts) or not heard.words:
        return 0, 0
    wanted = ["".join(bare_words(word)) for word in own]
    got = ["".join(bare_words(word)) for word, _ in heard.words]
    timed = close = 0
    for block in SequenceMatcher(None, wanted, got, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            late_s = heard.words[block.b + step][1] - spoken.word_starts[block.a + step]
            timed += 1
            close += abs(late_s) <= CLOSE_S
    return timed, close


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether two recognizers write the same, and who is right where they do not."""

    recordings: int
    same: int
    """Recordings in which both write the same words."""
    errors: tuple[int, int]
    """In the other recordings, of the one and of the other."""


def compare_words(one: Sequence[WrittenWords], other: Sequence[WrittenWords]) -> Agreement:
    """What two recognizers wrote of the same recordings."""
    pairs = list(zip(one, other, strict=True))
    unlike = [(a, b) for a, b in pairs if a.words != b.words]
    errors = sum(a.errors for a, _ in unlike), sum(b.errors for _, b in unlike)
    return Agreement(len(pairs), len(pairs) - len(unlike), errors)


def make_table(scores: Sequence[Scores]) -> str:
    """Markdown: one row for each condition and recognizer, and what the columns mean."""
    head = ["recording", "recognizer", "WER", "CPU s per s", "words within 80 ms", "same words"]
    own = {one.condition: one for one in scores if one.recognizer == ServerRecognizer.name}
    lines = [
        [
            one.condition,
            one.recognizer,
            f"{one.wer:.1f}%",
            f"{one.rtf:.3f}",
            f"{100 * one.close / one.timed:.0f}%" if one.timed else "",
            _compare_text(own.get(one.condition), one),
        ]
        for one in scores
    ]
    return (
        "The word error rate counts loops in full. CPU time is that of all processes of the server "
        "(cantata), or of the calling process. faster-whisper has the same model, one thread, its "
        "voice activity detector, word times and a beam of 5; pocketsphinx has its own model. "
        "Times of words are compared with those that the voice itself reports. The last column: "
        "recordings of which cantata writes the same words, and in brackets how many words are "
        "wrong in the others, cantata's before the recognizer's."
        "\n\n" + table(head, lines)
    )


def _compare_text(own: Scores | None, other: Scores) -> str:
    if own is None or own is other:
        return ""
    found = compare_words(own.written, other.written)
    return f"{found.same} of {found.recordings} ({found.errors[0]} : {found.errors[1]})"


def _read_all(url: str, voice: str, sentences: Sequence[EvalSentence]) -> list[ReadSentence]:
    return [read_aloud(url, voice, sentence.text) for sentence in sentences]


def _list_conditions(
    spoken: dict[str, list[ReadSentence]], long_minutes: float
) -> Iterator[tuple[str, list[ReadSentence]]]:
    others = [one.sound for recordings in spoken.values() for one in recordings]
    for voice, recordings in spoken.items():
        yield f"{voice}, clean", recordings
        for decibels in (10.0, 0.0):
            name = f"{voice}, babble at {decibels:g} dB"
            yield (
                name,
                [
                    replace(one, sound=add_babble(one.sound, others, decibels, seed))
                    for seed, one in enumerate(recordings)
                ],
            )
        name = f"{voice}, telephone"
        yield name, [replace(one, sound=over_telephone(one.sound)) for one in recordings]
    if long_minutes:
        name, recordings = next(iter(spoken.items()))
        seconds, whole = 0.0, list[ReadSentence]()
        while seconds < 60 * long_minutes:
            whole.append(recordings[len(whole) % len(recordings)])
            seconds += len(whole[-1].sound) / RATE_HZ
        yield f"{name}, {long_minutes:g} min without a break", [join_without_break(whole)]


def _score(recognizer: Recognizer, condition: str, recordings: Sequence[ReadSentence]) -> Scores:
    words = errors = timed = close = 0
    seconds = cpu_s = 0.0
    written = []
    for spoken in recordings:
        heard = recognizer.transcribe(spoken.sound)
        counted, wrong = count_errors(spoken.text, heard.text)
        both, right = compare_times(spoken, heard)
        words, errors, timed, close = words + counted, errors + wrong, timed + both, close + right
        seconds, cpu_s = seconds + len(spoken.sound) / RATE_HZ, cpu_s + heard.cpu_s
        written.append(WrittenWords(tuple(bare_words(heard.text)), wrong))
    return Scores(
        recognizer.name, condition, words, errors, seconds, cpu_s, timed, close, tuple(written)
    )


def _format_row(one: Scores) -> str:
    return f"{one.condition}: {one.recognizer} WER {one.wer:.1f}%, CPU {one.rtf:.3f} s per s"
