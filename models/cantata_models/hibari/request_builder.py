"""Text in, stage inputs out: what hibari does in the api process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cantata.contract.data.request import Voice
from cantata_layers.harmonic_vocoder import SAMPLE_RATE
from cantata_layers.misaki.speech import EnglishRequestBuilder, name_english
from cantata_layers.request_building import list_aliases
from cantata_models.hibari.voices import HibariVoiceFile, list_voices


def load_builder(checkpoint: Path) -> EnglishRequestBuilder:
    """The request builder of a folder with voices, which have OpenAI's names as aliases."""
    files = list_voices(checkpoint)
    voices = [_describe(files, index) for index in range(len(files))]
    return EnglishRequestBuilder(voices, SAMPLE_RATE)


def _describe(files: Sequence[HibariVoiceFile], index: int) -> Voice:
    file = files[index]
    aliases = list_aliases(index, len(files))
    kept = tuple(alias for alias in aliases if alias not in {one.name for one in files})
    language = name_english(british=file.british)
    return Voice(file.name, file.name.title(), file.description, kept, file.gender, language)
