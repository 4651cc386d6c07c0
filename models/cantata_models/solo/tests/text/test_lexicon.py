"""The lexicon: its contents, its data file, and dependencies that it must not have."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cantata_layers.english.fixes import FIXES, LETTERS
from cantata_layers.english.lexicon import (
    LEXICON_FILE,
    PHONES,
    decode_phones,
    encode_phones,
    load_lexicon,
)
from cantata_models.solo.text.homographs import HOMOGRAPHS
from cantata_models.solo.training.lexicon import first_pronunciations, pack


def test_lookups_at_the_ends_and_between() -> None:
    lexicon = load_lexicon()
    assert len(lexicon) > 126_000
    assert lexicon.get("hello") == ("HH", "AH", "L", "OW")
    first, *_, last = lexicon.items()
    assert lexicon.get(first[0]) == first[1]
    assert lexicon.get(last[0]) == last[1]
    assert lexicon.get("zzzzzz") is None
    assert lexicon.get("hell ") is None
    assert "hello" in lexicon
    assert "hellooo" not in lexicon


def test_phone_codes_round_trip() -> None:
    assert decode_phones(encode_phones(PHONES)) == PHONES


def test_the_data_file_is_what_the_build_script_makes() -> None:
    pocketsphinx = pytest.importorskip("pocketsphinx")
    with open(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict"), encoding="ascii") as source:
        words = first_pronunciations(source)
    assert dict(load_lexicon().items()) == words
    few = dict(list(words.items())[:100])
    assert pack(few) == pack(dict(reversed(few.items())))


def test_the_data_file_is_small_and_its_licence_lies_beside_it() -> None:
    assert LEXICON_FILE.stat().st_size < 1_200_000
    licence = LEXICON_FILE.with_name("LEXICON_LICENSE").read_text(encoding="utf-8")
    assert "Carnegie Mellon University" in licence


def test_hand_written_pronunciations_use_the_inventory() -> None:
    tables = [*FIXES.values(), *LETTERS.values()]
    tables += [phones for entry in HOMOGRAPHS.values() for phones in (entry.usual, entry.other)]
    assert all(phones and set(phones) <= set(PHONES) for phones in tables)


def test_run_time_needs_neither_pocketsphinx_nor_torch_and_loads_lazily() -> None:
    script = (
        "import sys; import cantata_models.solo.text as text;"
        "from cantata_layers.english.lexicon import load_lexicon;"
        "assert load_lexicon.cache_info().currsize == 0;"
        "text.phonemize('Hello zorblat');"
        "found = {'pocketsphinx', 'torch', 'inflect', 'num2words'} & set(sys.modules);"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
