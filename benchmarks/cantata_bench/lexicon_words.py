"""Whether names and abbreviations are heard as a lexicon says them, and how often without it.

    python -m cantata_bench.lexicon_words [WORDS]

`lexicon_words.tsv` has 300 of them, each with an alias that no rule would guess. The default model
speaks each in a sentence, its voices in turn; Whisper tiny.en, which knows neither, writes down
what it hears.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import soundfile

from cantata.config.plugins import locate
from cantata.contract.data.request import LexiconEntry
from cantata.lexicons.pls import write_pls
from cantata_bench.server import running_server
from cantata_bench.voice_quality.judges import Whisper
from cantata_bench.voice_quality.measures import prepare

BEFORE, AFTER = "The next word is", "and that is all"
NAME = "words"
ALIKE = 0.75
"""Share of letters in common: the ears spell names in their own way."""
_WORDS = Path(__file__).with_suffix(".tsv")
_DEADLINE_S = 120.0
_VOICES = ("clara", "ben", "ruby", "ewan")


@dataclass(frozen=True, slots=True)
class LexiconWord:
    """A word with its entry."""

    word: str
    said: str
    """The entry's alias."""


@dataclass(frozen=True, slots=True)
class HeardWord:
    """What was heard of a word, with its entry and without."""

    word: LexiconWord
    voice: str
    with_entry: str
    without: str


def read_words(most: int | None = None) -> list[LexiconWord]:
    """The set, or so many of it, spread over all."""
    lines = _WORDS.read_text("utf-8").splitlines()
    words = [LexiconWord(*line.split("\t")) for line in lines]
    step = 1 if most is None else max(1, len(words) // most)
    return words[::step][:most]


def is_heard_as(said: str, heard: str) -> bool:
    """Whether an alias is in what was heard, whatever the spaces and most of the spelling."""
    wanted, found = _keep_letters(said), _keep_letters(heard)
    first, last = _keep_letters(BEFORE), _keep_letters(AFTER)
    start = found.find(first)
    end = found.rfind(last)
    between = found[start + len(first) if start >= 0 else 0 : end if end >= 0 else len(found)]
    return SequenceMatcher(None, wanted, between, autojunk=False).ratio() >= ALIKE


def _keep_letters(text: str) -> str:
    return "".join(re.findall("[a-z]", text.lower()))


def hear_words(url: str, words: Sequence[LexiconWord]) -> list[HeardWord]:
    """Give a server all of them as one lexicon, have each spoken with it and without, and hear
    both."""
    ears, heard = Whisper(), list[HeardWord]()
    with httpx.Client(base_url=url, timeout=_DEADLINE_S) as http:
        entries = [LexiconEntry(one.word, alias=one.said) for one in words]
        files = {"file": ("words.pls", write_pls(entries).encode())}
        http.post("/v1/lexicons", data={"name": NAME}, files=files).raise_for_status()
        for number, word in enumerate(words):
            voice = _VOICES[number % len(_VOICES)]
            body = {"input": f"{BEFORE}: {word.word}, {AFTER}.", "voice": voice, "seed": number}
            told = []
            for lexicons in ([NAME], []):
                asked = {**body, "lexicons": lexicons, "response_format": "wav"}
                answer = http.post("/v1/audio/speech", json=asked).raise_for_status()
                sound, rate = soundfile.read(io.BytesIO(answer.content), dtype="float32")
                told.append(ears.transcribe(prepare(sound, rate)))
            heard.append(HeardWord(word, voice, *told))
    return heard


def measure(heard: Sequence[HeardWord]) -> tuple[float, float]:
    """Share of words that were heard as their entries say, with these and without."""
    with_entry = [is_heard_as(one.word.said, one.with_entry) for one in heard]
    without = [is_heard_as(one.word.said, one.without) for one in heard]
    return sum(with_entry) / len(heard), sum(without) / len(heard)


def report(heard: Sequence[HeardWord]) -> Iterator[str]:
    """Lines: those that were not heard, and the shares."""
    missed = [one for one in heard if not is_heard_as(one.word.said, one.with_entry)]
    for one in missed:
        yield f"{one.word.word} ({one.voice}): {one.word.said!r} heard as {one.with_entry!r}"
    known = sum(_keep_letters(one.word.word) in _keep_letters(one.with_entry) for one in missed)
    with_entry, without = measure(heard)
    yield f"of these, {known} were written as the word itself is spelled"
    yield f"heard as the entry says: {with_entry:.1%}; without the lexicon: {without:.1%}"


def main() -> None:
    """Entry point."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else None
    with TemporaryDirectory() as folder:
        options = ["--voices-dir", f"{folder}/voices", "--jobs-dir", f"{folder}/jobs"]
        options += ["--model", locate(None).plugin.name]
        with running_server(Path(folder) / "log", options=options) as server:
            heard = hear_words(server.url, read_words(most))
    for line in report(heard):
        print(line)


if __name__ == "__main__":
    main()
