"""Words outside the lexicon: the network's error rate, and inflections, which come first."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cantata_layers.english.lexicon import PHONES
from cantata_models.solo.text.letter_to_sound import (
    ALPHABET,
    MAX_LETTERS,
    WEIGHTS_FILE,
    load_letter_to_sound,
    phone_errors,
)
from cantata_models.solo.text.pronounce import past, plural, word_phones
from cantata_models.solo.training.letter_alignment import align, train_table
from cantata_models.solo.training.letter_to_sound import (
    LetterNetwork,
    is_held_out,
    lexicon_pairs,
    phone_error_rate,
)


def test_phone_error_rate_on_held_out_words() -> None:
    sample = [pair for pair in lexicon_pairs() if is_held_out(pair[0])][::30]
    assert len(sample) > 200
    assert phone_error_rate(load_letter_to_sound(), sample) < 9.0


def test_held_out_words_keep_their_possessives_with_them() -> None:
    assert is_held_out("smith") == is_held_out("smith's")


def test_numpy_chooses_as_torch_does() -> None:
    model = load_letter_to_sound()
    weights = {key: torch.from_numpy(value) for key, value in model._weights.items()}
    hidden = weights["gru.weight_hh_l0"].shape[1]
    embedding = weights["embedding.weight"].shape[1]
    network = LetterNetwork(len(model._chunks), embedding=embedding, hidden=hidden)
    network.load_state_dict(weights)
    network.eval()
    for word in ("zorblat", "kwyjibo", "phthisis", "o'brien"):
        letters = [ALPHABET.index(letter) for letter in word]
        with torch.no_grad():
            wanted = network(torch.tensor([letters]))[0].argmax(dim=1).tolist()
        assert model._choose(letters) == wanted


def test_weights_are_small() -> None:
    assert WEIGHTS_FILE.stat().st_size <= 1_000_000


def test_long_and_strange_words_are_bounded() -> None:
    model = load_letter_to_sound()
    assert set(model("x" * (3 * MAX_LETTERS) + "9 é")) <= set(PHONES)
    assert model("123") == ()
    assert word_phones("zzzzzz") != ()


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("cantatas", "K AH N T AA T AH Z"),
        ("emojis", "IH M OW JH IY Z"),
        ("codecs", "K OW D EH K S"),
        ("reposted", "R IY P OW S T IH D"),
        ("blogged", "B L AO G D"),
        ("gif's", "G IH F S"),
        ("A's", "EY Z"),
        ("X's", "EH K S IH Z"),
    ],
)
def test_inflections_of_listed_words(word: str, phones: str) -> None:
    assert " ".join(word_phones(word)) == phones


def test_endings_follow_the_last_sound() -> None:
    assert [plural((last,))[1:] for last in ("S", "T", "D")] == [("IH", "Z"), ("S",), ("Z",)]
    assert [past((last,))[1:] for last in ("T", "K", "N")] == [("IH", "D"), ("T",), ("D",)]


def test_phone_errors_is_the_edit_distance() -> None:
    assert phone_errors(("K", "AE", "T"), ("K", "AE", "T")) == 0
    assert phone_errors(("K", "AE", "T"), ("K", "AH", "T", "S")) == 2
    assert phone_errors((), ("K",)) == 1


def test_alignment_gives_each_letter_its_phones() -> None:
    pairs = [("cat", ("K", "AE", "T")), ("at", ("AE", "T")), ("tack", ("T", "AE", "K"))] * 5
    table = train_table(pairs)
    assert align("cat", ("K", "AE", "T"), table) == (("K",), ("AE",), ("T",))
    assert align("a", ("K", "AE", "T"), table) is None
    assert np.isfinite(table["c"][("K",)])
