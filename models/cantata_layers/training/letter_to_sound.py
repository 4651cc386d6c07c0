"""Learns how letters of unknown words sound: python -m cantata_layers.training.letter_to_sound

Joint-sequence models (Bisani and Ney, "Joint-sequence models for grapheme-to-phoneme conversion",
2008): expectation maximization finds which phones each letter of the lexicon's words stands for;
the pairs are the words of an n-gram language model with modified Kneser-Ney smoothing (Chen and
Goodman, 1998). Both accents take a minute, most of it Python's.

The lexicons are those of the package hibari-tts (misaki's gold ones, Apache-2.0). Every thirtieth
word, by a hash, is held out; the share of these that comes out right is printed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata_layers.misaki.letter_to_sound import (
    BITS,
    END,
    FIRST_PAIR,
    ORDER,
    START,
    UNIT,
    WORST,
    LetterReader,
    NgramTable,
    find_weights,
    save_tables,
)

_PHONE = re.compile("[ˈˌ]?[^ˈˌ]")
_WORD = re.compile("[A-Za-z]{2,}")
_MAX_PHONES = 3
"""Of a letter: the x of "exam" has two, and a lengthened vowel is two letters of the alphabet."""
_FIRST_GUESS = (1.0, 1.0, 0.05, 0.002)
"""How likely a letter stands for so many phones, before anything is known."""
_ROUNDS = 8
_UNSEEN, _TINY = 1e-9, 1e-300
_MIN_COUNT = 3
"""Rarer pairs are mistakes of the lexicon, or words of other languages; so are words with them."""
_HELD_OUT = 30

Pair = tuple[str, str]
"""A letter, and the phones that it stands for."""
Lexicon = Mapping[str, Sequence[str]]
"""The readings of words in small letters."""


def read_lexicon(package: Path, accent: str) -> Lexicon:
    """The ordinary words and names of one accent's lexicon; no abbreviations."""
    packed = (package / "assets" / f"lexicon_{accent}_gold.json.gz").read_bytes()
    found: dict[str, set[str]] = defaultdict(set)
    for word, said in json.loads(gzip.decompress(packed)).items():
        phones = said.get("DEFAULT") if isinstance(said, dict) else said
        if phones and _WORD.fullmatch(word) and not word.isupper():
            found[word.lower()].add(phones)
    return {word: sorted(found[word]) for word in sorted(found)}


def is_held_out(word: str) -> bool:
    """Whether a word is kept from the training."""
    return hashlib.sha256(word.encode()).digest()[0] % _HELD_OUT == 0


class _AlikeWords:
    """Words with as many letters and phones as each other: W words, N letters, M places between
    phones, K numbers of phones that a letter stands for."""

    def __init__(
        self, words: Sequence[str], letters: NDArray[np.int64], chunks: NDArray[np.int64]
    ) -> None:
        self.words = words
        self.letters = letters
        """[W, N]"""
        self.chunks = chunks
        """[W, M, K], which phones begin at a place; -1: not so many are left."""

    def look_up(self, table: NDArray[np.float64], otherwise: float) -> NDArray[np.float64]:
        """[W, N, M, K] of a table of letters and phones."""
        found = table[self.letters[:, :, None, None], self.chunks[:, None]]
        return np.where(self.chunks[:, None] < 0, otherwise, found)

    def count(self, likely: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected number of times that each letter stands for each sequence of phones: forward and
        backward sums over the alignments."""
        share = self.look_up(likely, 0.0)
        _, letters, places, most = share.shape
        ahead = np.zeros((len(share), letters + 1, places))
        back = np.zeros_like(ahead)
        ahead[:, 0, 0] = back[:, letters, places - 1] = 1
        for i in range(letters):
            for n in range(min(most, places)):
                ahead[:, i + 1, n:] += ahead[:, i, : places - n] * share[:, i, : places - n, n]
            ahead[:, i + 1] /= np.maximum(ahead[:, i + 1].sum(1, keepdims=True), _TINY)
        for i in reversed(range(letters)):
            for n in range(min(most, places)):
                share[:, i, : places - n, n] *= back[:, i + 1, n:]
            back[:, i] = share[:, i].sum(2)
            back[:, i] /= np.maximum(back[:, i].sum(1, keepdims=True), _TINY)
        share *= ahead[:, :-1, :, None]
        share /= np.maximum(share.sum((2, 3), keepdims=True), _TINY)
        pairs = (
            self.letters[:, :, None, None] * likely.shape[1] + np.maximum(self.chunks, 0)[:, None]
        )
        summed = np.bincount(pairs.ravel(), share.ravel(), likely.size)
        return np.asarray(summed, np.float64).reshape(likely.shape)

    def find_best(self, costs: NDArray[np.float64]) -> NDArray[np.int64]:
        """[W, N]: the phones that each letter stands for, in the likeliest alignment."""
        cost = self.look_up(costs, np.inf)
        words, letters, places, most = cost.shape
        least = np.full((words, letters + 1, places), np.inf)
        taken = np.zeros((words, letters + 1, places), np.int64)
        least[:, 0, 0] = 0
        for i in range(letters):
            for n in range(min(most, places)):
                summed = least[:, i, : places - n] + cost[:, i, : places - n, n]
                better = summed < least[:, i + 1, n:]
                least[:, i + 1, n:][better] = summed[better]
                taken[:, i + 1, n:][better] = n
        found = np.zeros((words, letters), np.int64)
        rows, place = np.arange(words), np.full(words, places - 1)
        for i in reversed(range(letters)):
            n = taken[rows, i + 1, place]
            place = place - n
            found[:, i] = self.chunks[rows, place, n]
        return found


def _group(
    words: Sequence[tuple[str, str]], alphabet: Mapping[str, int], names: dict[tuple[str, ...], int]
) -> Iterator[_AlikeWords]:
    """Words by their numbers of letters and phones; `names` gets the sequences of phones."""
    alike: dict[tuple[int, int], list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for word, said in words:
        phones = tuple(_PHONE.findall(said))
        if len(phones) <= _MAX_PHONES * len(word):
            alike[len(word), len(phones)].append((word, phones))

    def number(phones: tuple[str, ...], place: int, count: int) -> int:
        if place + count > len(phones):
            return -1
        return names.setdefault(phones[place : place + count], len(names))

    for group in alike.values():
        chunks = [
            [[number(phones, j, n) for n in range(_MAX_PHONES + 1)] for j in range(len(phones) + 1)]
            for _, phones in group
        ]
        letters = [[alphabet[letter] for letter in word] for word, _ in group]
        yield _AlikeWords([word for word, _ in group], np.array(letters), np.array(chunks))


def align(words: Sequence[tuple[str, str]]) -> list[list[Pair]]:
    """Each word's letters with their phones; words with rare pairs are left out."""
    alphabet = {c: i for i, c in enumerate(sorted({c for word, _ in words for c in word}))}
    names: dict[tuple[str, ...], int] = {(): 0}
    groups = list(_group(words, alphabet, names))
    likely = np.empty((len(alphabet), len(names)))
    for phones, number in names.items():
        likely[:, number] = _FIRST_GUESS[len(phones)]
    for _ in range(_ROUNDS):
        likely /= likely.sum(axis=1, keepdims=True)
        summed = np.full_like(likely, _UNSEEN)
        for group in groups:
            summed += group.count(likely)
        likely = summed
    likely /= likely.sum(axis=1, keepdims=True)
    spelled = {number: "".join(phones) for phones, number in names.items()}
    aligned = [
        [(letter, spelled[int(number)]) for letter, number in zip(word, best, strict=True)]
        for group in groups
        for word, best in zip(group.words, group.find_best(-np.log(likely)), strict=True)
    ]
    counts = Counter(pair for word in aligned for pair in word)
    return [word for word in aligned if all(counts[pair] >= _MIN_COUNT for pair in word)]


Grams = Counter[tuple[int, ...]]


def _count_grams(words: Sequence[Sequence[int]]) -> list[Grams]:
    """By order less one: how often n-grams of the highest order occur, and after how many different
    pairs those of lower orders do. Where a word begins, nothing stands before: it occurs, too."""
    occurring: list[Grams] = [Counter() for _ in range(ORDER)]
    for word in words:
        for last in range(1, len(word)):
            for first in range(max(0, last - ORDER + 1), last + 1):
                occurring[last - first][tuple(word[first : last + 1])] += 1
    for order in range(ORDER - 1):
        kinds = Counter(gram[1:] for gram in occurring[order + 1])
        kinds |= Counter({g: n for g, n in occurring[order].items() if g[0] == START})
        occurring[order] = kinds
    return occurring


def _find_discounts(counts: Grams) -> tuple[float, ...]:
    """Of counts 0, 1, 2, and 3 or more."""
    number = Counter(min(count, 4) for count in counts.values())
    one, two, three, four = (max(number[n], 1) for n in (1, 2, 3, 4))
    base = one / (one + 2 * two)
    wanted = (1 - 2 * base * two / one, 2 - 3 * base * three / two, 3 - 4 * base * four / three)
    return (0.0, *(min(max(d, 0.1), n + 0.9) for n, d in enumerate(wanted)))


def estimate(words: Sequence[Sequence[int]], pairs: int) -> list[NgramTable]:
    """The language model, by order.

    Args:
        words: numbers of pairs, with `START` and `END` around them.
        pairs: how many different ones there are.
    """
    likely: list[dict[tuple[int, ...], float]] = []
    backoff: list[dict[tuple[int, ...], float]] = []
    for order, counts in enumerate(_count_grams(words)):
        discounts = _find_discounts(counts)
        total, kept = Counter[tuple[int, ...]](), defaultdict[tuple[int, ...], float](float)
        for gram, count in counts.items():
            total[gram[:-1]] += count
            kept[gram[:-1]] += discounts[min(count, 3)]
        backoff.append({context: kept[context] / total[context] for context in total})
        lower = likely[order - 1] if order else None
        likely.append(
            {
                gram: (count - discounts[min(count, 3)]) / total[gram[:-1]]
                + backoff[order][gram[:-1]] * (lower[gram[1:]] if lower else 1 / (pairs + 1))
                for gram, count in counts.items()
            }
        )
    backoff.append({})
    return [_make_table(one, backoff[order + 1]) for order, one in enumerate(likely)]


def _make_table(
    likely: Mapping[tuple[int, ...], float], backoff: Mapping[tuple[int, ...], float]
) -> NgramTable:
    rows = sorted(
        (_pack(gram), _to_cost(p), _to_cost(backoff.get(gram, 1.0))) for gram, p in likely.items()
    )
    missing = backoff.keys() - likely.keys()
    rows += [(_pack(gram), WORST, _to_cost(backoff[gram])) for gram in missing]
    keys, costs, extra = zip(*sorted(rows), strict=True)
    return NgramTable(np.array(keys), np.array(costs, np.uint8), np.array(extra, np.uint8))


def _pack(gram: Sequence[int]) -> int:
    packed = 0
    for number in gram:
        packed = packed << BITS | number
    return packed


def _to_cost(likely: float) -> int:
    return min(WORST, round(-math.log(likely) / UNIT))


def train(lexicon: Lexicon) -> tuple[list[Pair], list[NgramTable]]:
    """The pairs of letters and phones, and the language model of them."""
    aligned = align([(word, said) for word, readings in lexicon.items() for said in readings])
    pairs = sorted({pair for word in aligned for pair in word})
    number = {pair: FIRST_PAIR + i for i, pair in enumerate(pairs)}
    assert FIRST_PAIR + len(pairs) <= 1 << BITS
    words = [[START, *(number[pair] for pair in word), END] for word in aligned]
    return pairs, estimate(words, len(pairs))


def _check(reader: LetterReader, held_out: Lexicon) -> Iterator[bool]:
    for word, readings in held_out.items():
        yield reader(word) in readings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the weights go; default: the package")
    given = parser.parse_args()
    import hibari

    package = Path(hibari.__file__).parent
    for accent in ("us", "gb"):
        lexicon = read_lexicon(package, accent)
        held_out = {word: said for word, said in lexicon.items() if is_held_out(word)}
        trained = {word: said for word, said in lexicon.items() if word not in held_out}
        path = find_weights(british=accent == "gb")
        path = path if given.folder is None else given.folder / path.name
        save_tables(path, *train(trained))
        right = list(_check(LetterReader(path), held_out))
        grams = path.stat().st_size / 1e6
        print(f"{path.name}: {sum(right) / len(right):.1%} of {len(right)} right, {grams:.1f} MB")


if __name__ == "__main__":
    main()
