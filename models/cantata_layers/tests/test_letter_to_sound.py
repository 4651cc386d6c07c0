"""Letter-to-sound: words that it has not seen, words that are none, and how it learns."""

from __future__ import annotations

from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest
from hibari.g2p.oov import OOV

from cantata_layers.misaki.g2p import load_g2p
from cantata_layers.misaki.letter_to_sound import LetterReader, load_letter_reader, save_tables
from cantata_layers.misaki.phones import vocabulary
from cantata_layers.training.letter_to_sound import is_held_out, read_lexicon, train

PACKAGE = Path(str(files("hibari")))
EVERY = 6
"""Of the words that were held out."""


@pytest.fixture(scope="module", params=["us", "gb"])
def accent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def held_out(accent: str) -> dict[str, list[str]]:
    lexicon = read_lexicon(PACKAGE, accent)
    words = [word for word in lexicon if is_held_out(word)][::EVERY]
    return {word: list(lexicon[word]) for word in words}


def test_most_unseen_words_are_right(accent: str, held_out: dict[str, list[str]]) -> None:
    reader = load_letter_reader(accent == "gb")
    network = OOV(str(PACKAGE / "assets" / ("oov_gb.onnx" if accent == "gb" else "oov.onnx")))
    right = sum(reader(word) in said for word, said in held_out.items())
    by_network = sum(network(word) in said for word, said in held_out.items())
    assert len(held_out) > 400
    assert right / len(held_out) > 0.57
    assert right > 1.4 * by_network


def test_each_word_has_one_primary_stress_and_known_phones(
    accent: str, held_out: dict[str, list[str]]
) -> None:
    reader = load_letter_reader(accent == "gb")
    for word in held_out:
        said = reader(word)
        assert said.count("ˈ") == 1, f"{word}: {said}"  # noqa: RUF001
        assert set(said) <= vocabulary().keys(), f"{word}: {said}"


@pytest.mark.parametrize("word", ["", "vllm", "Qwn", "xyz" * 20, "12", "Москва"])
def test_what_cannot_be_said_has_no_phones(word: str) -> None:
    assert load_letter_reader(False)(word) == ""


def test_letters_with_marks_are_read_without_them() -> None:
    reader = load_letter_reader(False)
    assert reader("Zoë") == reader("zoe") != ""


def test_the_front_end_reads_unknown_words_by_it() -> None:
    letters = {number: letter for letter, number in vocabulary().items()}

    def read(text: str) -> str:
        (sentence,) = load_g2p(False).read(text)
        return "".join(letters.get(phone, "") for phone in sentence.phones)

    assert load_letter_reader(False)("Zelensky") in read("We met Zelensky.")
    assert "ˈɛm" in read("vllm"), "spelled out"  # noqa: RUF001


def test_it_learns_the_spelling_of_a_lexicon(tmp_path: Path) -> None:
    """Here c is soft before e and i, th is one phone, and a last e is silent."""
    consonants = {"b": "b", "d": "d", "n": "n", "th": "θ", "c": "k"}
    vowels = {"a": "æ", "e": "ɛ", "i": "i"}

    def say(first: str, vowel: str, last: str) -> str:
        begins = "s" if first == "c" and vowel in "ei" else consonants[first]
        return f"{begins}ˈ{vowels[vowel]}{consonants[last]}"  # noqa: RUF001

    lexicon = {
        first + vowel + last + end: [say(first, vowel, last)]
        for first, vowel, last in product(consonants, vowels, ("b", "d", "n", "th"))
        for end in ("", "e")
    }
    unseen = ["cithe", "cath", "thebe", "dane", "nith"]
    save_tables(tmp_path / "toy.npz", *train({w: lexicon[w] for w in lexicon if w not in unseen}))
    reader = LetterReader(tmp_path / "toy.npz")
    assert {word: [reader(word)] for word in unseen} == {word: lexicon[word] for word in unseen}
