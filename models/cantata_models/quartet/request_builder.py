"""Text in, stage inputs out: what quartet does in the api process."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.request import Voice
from cantata_layers.harmonic_vocoder import SAMPLE_RATE
from cantata_layers.misaki.speech import EnglishRequestBuilder
from cantata_layers.openai_voices import alias_by_gender
from cantata_models.quartet.config import load_config


def load_builder(checkpoint: Path) -> EnglishRequestBuilder:
    """The request builder of a folder with voices, which have OpenAI's names as aliases."""
    known = load_config(checkpoint).voices
    voices = [Voice(one.id, one.name, one.description, (), one.gender) for one in known]
    british = frozenset(one.id for one in known if one.british)
    return EnglishRequestBuilder(alias_by_gender(voices), british, SAMPLE_RATE, inflections=True)
