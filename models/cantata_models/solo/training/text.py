"""Stage text: the sentences that the teachers read.

There are two sources. Sentence frames are filled from word lists (questions, numbers, names, single
rare words). Word sequences are drawn from pocketsphinx's trigram model, so their transitions are
those of real English.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pocketsphinx

from cantata_layers.english.lexicon import load_lexicon
from cantata_layers.training.progress import new_bar
from cantata_models.solo.training import word_lists as words

logger = logging.getLogger(__name__)

HELDOUT_FILE = Path(__file__).with_name("heldout.tsv")
MODEL_SHARE = 0.5
"""Share of sentences from the trigram model."""
LONG_SHARE = 0.06
"""Share of long sentences; the rest are filled frames."""
LONG_WORDS = (24, 58)
COMMON_WORDS = 12_000
"""The trigram model draws from this many of the most frequent words."""
CANDIDATES = 256
"""Proposals per drawn word."""
LANGUAGE_MODEL_FLOOR = -500_000
"""A score below this means that the model lacks the word (its log base is 1.0001)."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A sentence for evaluation, never used in training."""

    group: str
    text: str


def read_heldout() -> tuple[HeldOut, ...]:
    """Returns the held-out sentences, in file order."""
    lines = HELDOUT_FILE.read_text().splitlines()
    return tuple(HeldOut(*line.split("\t")) for line in lines if line)


class WordModel:
    """Word frequencies and trigram probabilities of pocketsphinx's English model."""

    def __init__(self) -> None:
        path = f"{pocketsphinx.get_model_path()}/en-us/en-us.lm.bin"
        self._log = pocketsphinx.LogMath()
        self._model = pocketsphinx.NGramModel(pocketsphinx.Config(), self._log, path)
        scored = sorted(
            (-self._model.prob([word]), word)
            for word, _ in load_lexicon().items()
            if self._model.prob([word]) > LANGUAGE_MODEL_FLOOR
        )
        self.by_frequency = [word for _, word in scored if len(word) > 1 or word in "ai"]
        common = self.by_frequency[:COMMON_WORDS]
        # Flatten frequencies: rare words matter more to a voice than to a language model.
        weights = np.array([math.exp(0.7 * self._ln([word])) for word in common])
        self._common = common
        self._proposal = weights / weights.sum()

    def _ln(self, words_backwards: list[str]) -> float:
        return float(self._log.log_to_ln(self._model.prob(words_backwards)))

    def sentence(self, rng: np.random.Generator, length: int) -> list[str]:
        """Draws `length` words: proposals by flat frequency, resampled by the trigram model."""
        history: list[str] = ["<s>"]
        for _ in range(length):
            drawn = rng.choice(len(self._common), size=CANDIDATES, p=self._proposal)
            context = history[:-3:-1]
            scores = np.array([self._ln([self._common[i], *context]) for i in drawn])
            weights = np.exp(scores - scores.max()) / self._proposal[drawn]
            pick = rng.choice(drawn, p=weights / weights.sum())
            history.append(self._common[pick])
        return history[1:]


def spell_number(value: int) -> list[str]:
    """Returns the words of 0 <= value < 1,000,000."""
    if value >= 1000:
        rest = spell_number(value % 1000) if value % 1000 else []
        return [*spell_number(value // 1000), "thousand", *rest]
    if value >= 100:
        rest = spell_number(value % 100) if value % 100 else []
        return [words.ONES[value // 100], "hundred", *rest]
    if value >= 20:
        rest = [words.ONES[value % 10]] if value % 10 else []
        return [words.TENS[value // 10 - 2], *rest]
    return [words.ONES[value]]


class SentenceMaker:
    """Fills frames and draws sentences, all from one random generator."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._model = WordModel()
        lexicon = {word for word, _ in load_lexicon().items()}
        known = self._model.by_frequency
        self._rare = [w for w in known[1000:60_000] if len(w) > 2 and "'" not in w]
        self._lists: dict[str, Sequence[str]] = {
            "ADJ": words.ADJECTIVES,
            "NOUN": words.NOUNS,
            "VPAST": words.VERBS_PAST,
            "VBASE": words.VERBS_BASE,
            "ADV": words.ADVERBS,
            "PREP": words.PREPOSITIONS,
            "PLACE": words.PLACES,
            "MONTH": words.MONTHS,
            "WEEKDAY": words.WEEKDAYS,
            "UNIT": words.UNITS,
            "ORD": words.ORDINALS,
            "FIRST": words.FIRST_NAMES,
            "LAST": words.LAST_NAMES,
            "DIGIT": words.ONES[:10],
            "RARE": self._rare,
            "SUBJ": ["i", "you", "we", "they", *words.FIRST_NAMES[:20]],
        }
        self._lexicon = lexicon

    def _choose(self, options: Sequence[str]) -> str:
        return options[int(self._rng.integers(len(options)))]

    def _number(self) -> list[str]:
        return spell_number(int(10 ** self._rng.uniform(0.3, 5.9)))

    def _slot(self, name: str) -> list[str]:
        if name == "NUM":
            return self._number()
        if name == "NAME":
            last = [self._choose(words.LAST_NAMES)] if self._rng.random() < 0.4 else []
            return [self._choose(words.FIRST_NAMES), *last]
        if name == "YEAR":
            century = ["nineteen"] if self._rng.random() < 0.5 else ["twenty"]
            return [*century, *spell_number(int(self._rng.integers(10, 99)))]
        if name == "CLOCK":
            minutes = self._choose(["fifteen", "thirty", "forty five", "ten", "twenty", "o'clock"])
            half = self._choose(["in the morning", "in the evening", ""])
            return [self._choose(words.ONES[1:13]), *minutes.split(), *half.split()]
        if name == "DIGITS":
            return [self._choose(words.ONES[:10]) for _ in range(int(self._rng.integers(3, 8)))]
        if name == "LETTERS":
            return [self._choose(words.LETTERS) for _ in range(int(self._rng.integers(2, 5)))]
        if name == "PHRASE":
            return self._choose(words.PHRASES).replace(",", " ,").split()
        return [self._choose(self._lists[name])]

    def from_frame(self) -> list[str]:
        """Returns the words and punctuation marks of one filled frame."""
        tokens: list[str] = []
        for part in self._choose(words.FRAMES).split():
            tokens += self._slot(part) if part.isupper() else [part]
        return tokens

    def from_model(self) -> list[str]:
        """Returns one trigram sentence with commas and an end mark."""
        length = int(np.clip(self._rng.gamma(3.0, 3.2), 2, 26))
        tokens: list[str] = []
        for position, word in enumerate(self._model.sentence(self._rng, length)):
            joins = word in {"and", "but", "or", "because", "so", "which", "when", "if"}
            if position > 2 and self._rng.random() < (0.35 if joins else 0.02):
                tokens.append(",")
            tokens.append(word)
        return [*tokens, self._rng.choice([".", ".", ".", ".", "?", "!"])]

    def long(self) -> list[str]:
        """Returns several sentences joined by commas."""
        wanted = int(self._rng.integers(*LONG_WORDS))
        tokens: list[str] = []
        while len(tokens) < wanted:
            part = self.from_model() if self._rng.random() < 0.5 else self.from_frame()
            joint = self._choose(words.JOINTS)
            tokens += [*(t for t in part if t not in ".?!"), ",", *joint.split()]
        return [
            *tokens[: tokens.index(",", wanted - 8) if "," in tokens[wanted - 8 :] else -1],
            ".",
        ]

    def draw(self) -> list[str]:
        """Returns the words and marks of one sentence of a random kind."""
        kind = self._rng.random()
        if kind < LONG_SHARE:
            return self.long()
        return self.from_model() if kind < LONG_SHARE + MODEL_SHARE else self.from_frame()

    def sentence(self) -> str:
        """Returns one sentence whose words are all in the lexicon, marks attached to words."""
        while True:
            tokens = self.draw()
            if all(token in self._lexicon or token in ",.?!" for token in tokens):
                text = " ".join(tokens)
                return re.sub(r" (?=[,.?!])", "", text)


def bare(text: str) -> str:
    """Returns the text without punctuation marks, for comparing sentences."""
    return "".join(c for c in text.lower() if c.isalnum() or c in "' ")


def write_sentences(path: Path, count: int, seed: int = 0) -> None:
    """Writes `count` different sentences, one per line, without any held-out sentence.

    With the same seed, a larger count starts with the same sentences. Existing audio stays valid.
    """
    if path.exists() and len(path.read_text().splitlines()) >= count:
        logger.info("%s has enough sentences, keeping it", path)
        return
    maker = SentenceMaker(seed)
    seen = {bare(item.text) for item in read_heldout()}
    lines: list[str] = []
    with new_bar() as bar:
        task = bar.add_task("sentences", total=count)
        while len(lines) < count:
            text = maker.sentence()
            if bare(text) not in seen:
                seen.add(bare(text))
                lines.append(text)
                bar.advance(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
