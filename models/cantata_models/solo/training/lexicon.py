"""Makes `lexicon.txt.xz` from the pronouncing dictionary inside pocketsphinx's wheel.

Run it as `python -m cantata_models.solo.training.lexicon` with the `train` extra installed. The
source is `cmudict-en-us.dict` (BSD licence, see `LEXICON_LICENSE`). Each word keeps its first
pronunciation; the source marks others as "word(2)". Each output line has the word, a space, and one
character per phone. Lines are in code-point order so that a lookup can bisect.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from pathlib import Path

from cantata_layers.english.lexicon import LEXICON_FILE, encode_phones


def first_pronunciations(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Maps each word of a cmudict-style file to its first pronunciation."""
    words: dict[str, tuple[str, ...]] = {}
    for line in lines:
        spelling, *phones = line.split()
        if not spelling.endswith(")"):
            words.setdefault(spelling, tuple(phones))
    return words


def pack(words: dict[str, tuple[str, ...]]) -> bytes:
    """Returns the words as the compressed data file."""
    lines = sorted(f"{word} {encode_phones(phones)}" for word, phones in words.items())
    return lzma.compress("\n".join(lines).encode("ascii"), preset=9 | lzma.PRESET_EXTREME)


def main() -> None:
    """Writes the data file next to this module and prints its size."""
    import pocketsphinx

    source = Path(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict"))
    words = first_pronunciations(source.read_text(encoding="ascii").splitlines())
    data = pack(words)
    LEXICON_FILE.write_bytes(data)
    print(f"{len(words)} words, {len(data)} bytes -> {LEXICON_FILE.name}")


if __name__ == "__main__":
    main()
