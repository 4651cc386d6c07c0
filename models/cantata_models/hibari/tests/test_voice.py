"""The stage: the package's samples, word times, bad files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import hibari.voices
import numpy as np
import pytest
import torch
from hibari import Hibari
from hibari.voices import VOICES

from cantata.contract.data.errors import ConfigError, InvalidRequest, RequestFailed
from cantata.contract.data.request import SpeechRequest
from cantata.pipeline.plan import plan_services
from cantata.pipeline.service import create_service
from cantata_layers.misaki.speech import EnglishRequestBuilder, SentenceInput
from cantata_models.hibari.request_builder import load_builder
from cantata_models.hibari.voice import HibariVoices, load_voices
from cantata_models.hibari.voices import find_downloads, find_package_files, list_voices
from e2e.judges.speech import align

CPU = torch.device("cpu")
HEART = "hibari.onnx"


@pytest.fixture(scope="module")
def package() -> Path:
    folder = find_package_files()
    assert folder is not None
    return folder


@pytest.fixture(scope="module")
def builder(package: Path) -> EnglishRequestBuilder:
    return load_builder(package)


@pytest.fixture(scope="module")
def voices(package: Path) -> HibariVoices:
    return load_voices(package, CPU)


def inputs_of(builder: EnglishRequestBuilder, request: SpeechRequest) -> SentenceInput:
    (piece,) = builder.build("r", request)
    found = piece.inputs["voice"]
    assert isinstance(found, SentenceInput)
    return found


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_the_sound_is_the_packages(
    speed: float, builder: EnglishRequestBuilder, voices: HibariVoices
) -> None:
    """But for the silence before the first word."""
    text = "She sells sea shells by the sea shore."
    parts = list(voices.synthesize(inputs_of(builder, SpeechRequest(text, "heart", speed, seed=3))))
    ours = np.concatenate([part.samples[:, 0] for part in parts])
    theirs = Hibari()(text, speed, seed=3)
    lead = len(theirs) - len(ours)
    assert lead > 0.1 * voices.sample_rate / speed
    assert np.abs(theirs[:lead]).max() < 0.01 * np.abs(theirs).max()
    theirs = theirs[lead:]
    assert np.square(ours - theirs).sum() < 1e-8 * np.square(theirs).sum()
    assert len(parts) > 2


def test_words_are_where_an_aligner_hears_them(
    builder: EnglishRequestBuilder, voices: HibariVoices
) -> None:
    text = "The children walked home along the river after school."
    first, *rest = voices.synthesize(inputs_of(builder, SpeechRequest(text, "heart", seed=1)))
    assert not any(part.words for part in rest)
    samples = np.concatenate([part.samples[:, 0] for part in (first, *rest)])
    heard = align(text, samples, voices.sample_rate)
    assert len(heard) == len(first.words)
    off = [abs(a.start_s - b.start_s) for a, b in zip(heard, first.words, strict=True)]
    assert np.median(off) < 0.03
    assert max(off) < 0.12


def test_each_sentence_is_a_piece(builder: EnglishRequestBuilder) -> None:
    text = "One. Two three."
    pieces = builder.build("r", SpeechRequest(text, "heart"))
    assert [piece.request_id for piece in pieces] == ["r-0", "r-1"]
    spans = [text[word.start : word.end] for piece in pieces for word in piece.words]
    assert spans == ["One", "Two", "three"]
    assert [piece.inputs["voice"].begins for piece in pieces] == [True, False]  # type: ignore[attr-defined]


def test_other_scripts_are_refused_and_marks_are_silence(builder: EnglishRequestBuilder) -> None:
    assert builder.build("r", SpeechRequest("...", "heart")) == ()
    with pytest.raises(InvalidRequest, match="English"):
        builder.build("r", SpeechRequest("猫が好き", "heart"))


def test_a_folder_with_published_files(package: Path, tmp_path: Path) -> None:
    """Any voice's network serves here: they have one shape."""
    (tmp_path / "voices").mkdir()
    shutil.copy(package / HEART, tmp_path / "voices" / VOICES["emma"]["file"])
    shutil.copy(package / HEART, tmp_path / VOICES["fenrir"]["file"])
    assert [voice.name for voice in list_voices(tmp_path)] == ["emma", "fenrir"]
    builder = load_builder(tmp_path)
    ids = {voice.id: voice for voice in builder.voices}
    assert ids["emma"].description == "British English, female"
    assert ids["fenrir"].gender == "male"
    british, american = (
        inputs_of(builder, SpeechRequest("Hello there.", name)) for name in ("emma", "fenrir")
    )
    assert list(british.phones) != list(american.phones)
    assert list(load_voices(tmp_path, CPU).synthesize(british))


def test_voices_that_the_package_has_downloaded(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIBARI_HOME", str(tmp_path))
    assert find_downloads() == Path(hibari.voices.cache_dir())
    shutil.copy(package / HEART, tmp_path / VOICES["fable"]["file"])
    assert [voice.name for voice in list_voices(package)] == ["heart", "fable"]
    assert [voice.name for voice in list_voices(tmp_path)] == ["fable"]
    monkeypatch.delenv("HIBARI_HOME")
    assert find_downloads() == Path(hibari.voices.cache_dir())


def test_bad_checkpoints(package: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"bf_emma\.int8\.onnx"):
        list_voices(tmp_path)
    (tmp_path / HEART).write_bytes(b"no network")
    with pytest.raises(ConfigError, match=HEART):
        load_voices(tmp_path, CPU)
    shutil.copy(package / "oov.onnx", tmp_path / HEART)
    with pytest.raises(ConfigError, match=HEART):
        load_voices(tmp_path, CPU)
    with pytest.raises(ConfigError, match="CPU"):
        load_voices(package, torch.device("cuda"))


def test_an_unknown_voice(builder: EnglishRequestBuilder, voices: HibariVoices) -> None:
    inputs = inputs_of(builder, SpeechRequest("Hello.", "heart"))
    other = replace(inputs, voice="emma")
    with pytest.raises(RequestFailed, match="emma"):
        list(voices.synthesize(other))


def test_its_sound_is_known_before_it_has_started(voices: HibariVoices) -> None:
    """The server lists it while it loads."""
    model = create_service(*plan_services(["hibari"])).get_model("hibari")
    assert (model.sample_rate, model.channels) == (voices.sample_rate, voices.channels)
