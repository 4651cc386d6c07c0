"""The catalogue of models and voices: a voice by any of its names, and mixtures of voices."""

from __future__ import annotations

import pytest

from cantata.contract.catalogue import Catalogue, find_voice
from cantata.contract.data.errors import ModelNotFound, VoiceNotFound
from cantata.contract.data.request import Voice

EARS, EYES = "ears", "whisper-1-of-ours"


def catalogue(*names: str) -> Catalogue[str, str, str, str]:
    """Of models that transcribe; each is its name."""
    return Catalogue({"voice": "voice"}, {}, {}, {name: name for name in names}, "voice")


@pytest.mark.parametrize(
    "name", [None, "whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe-2025-12-15"]
)
def test_the_first_model_transcribes_for_who_names_none(name: str | None) -> None:
    assert catalogue(EARS, EYES).get_transcription_model(name) == EARS
    assert catalogue(EYES, EARS).get_transcription_model(name) == EYES


def test_a_served_name_goes_before_the_names_that_clients_send_routinely() -> None:
    assert catalogue(EARS, EYES).get_transcription_model(EYES) == EYES
    assert catalogue(EARS).get_transcription_model(EYES) == EARS


@pytest.mark.parametrize("name", ["voice", "", "Ears", "gpt-4o"])
def test_other_names_are_answered_with_the_served_ones(name: str) -> None:
    with pytest.raises(ModelNotFound, match=f"{name!r} that transcribes; served: ears, whis") as no:
        catalogue(EARS, EYES).get_transcription_model(name)
    assert no.value.param == "model"


@pytest.mark.parametrize("name", [None, "whisper-1"])
def test_without_such_a_model_there_is_none(name: str | None) -> None:
    with pytest.raises(ModelNotFound, match="served: none"):
        catalogue().get_transcription_model(name)


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
