"""A voice by any of its names, and mixtures of voices."""

from __future__ import annotations

import pytest

from cantata.contract.data.errors import VoiceNotFound
from cantata.contract.data.request import Voice
from cantata.contract.voices import find_voice

VOICES = (Voice("af_bella", "Bella", aliases=("nova",)), Voice("af_sky", "Sky"))


@pytest.mark.parametrize(
    ("name", "found"),
    [(None, "af_bella"), ("AF_SKY", "af_sky"), ("sky", "af_sky"), ("nova", "af_bella")],
)
def test_names(name: str | None, found: str) -> None:
    assert find_voice(VOICES, name, "m").id == found
    assert find_voice(VOICES, name, "m", blends=True).id == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("af_bella+af_sky", "af_bella+af_sky"),
        ("Nova(2) + sky(0.5)", "af_bella(2) +af_sky(0.5)"),
        ("sky(1)", "af_sky(1)"),
    ],
)
def test_mixtures_have_the_ids_of_their_voices(name: str, found: str) -> None:
    assert find_voice(VOICES, name, "m", blends=True).id == found
    with pytest.raises(VoiceNotFound):
        find_voice(VOICES, name, "m")


@pytest.mark.parametrize("name", ["af_bella+bob", "bob(2)", "+", "af_bella+", "(", "bob+af_sky"])
def test_a_mixture_with_an_unknown_voice(name: str) -> None:
    with pytest.raises(VoiceNotFound, match="af_bella, af_sky"):
        find_voice(VOICES, name, "m", blends=True)
