"""Which model a request gets by the name it gives."""

from __future__ import annotations

import pytest

from cantata.contract.catalogue import Catalogue
from cantata.contract.data.errors import ModelNotFound

EARS, EYES = "ears", "whisper-1-of-ours"


def catalogue(*names: str) -> Catalogue[str, str, str, str]:
    """Of models that transcribe; each is its name."""
    return Catalogue({"voice": "voice"}, {}, {}, {name: name for name in names}, "voice")


@pytest.mark.parametrize(
    "name", [None, "whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe-2025-12-15"]
)
def test_the_first_model_transcribes_for_who_names_none(name: str | None) -> None:
    assert catalogue(EARS, EYES).transcription_model(name) == EARS
    assert catalogue(EYES, EARS).transcription_model(name) == EYES


def test_a_served_name_goes_before_the_names_that_clients_send_routinely() -> None:
    assert catalogue(EARS, EYES).transcription_model(EYES) == EYES
    assert catalogue(EARS).transcription_model(EYES) == EARS


@pytest.mark.parametrize("name", ["voice", "", "Ears", "gpt-4o"])
def test_other_names_are_answered_with_the_served_ones(name: str) -> None:
    with pytest.raises(ModelNotFound, match=f"{name!r} that transcribes; served: ears, whis") as no:
        catalogue(EARS, EYES).transcription_model(name)
    assert no.value.param == "model"


@pytest.mark.parametrize("name", [None, "whisper-1"])
def test_without_such_a_model_there_is_none(name: str | None) -> None:
    with pytest.raises(ModelNotFound, match="served: none"):
        catalogue().transcription_model(name)
