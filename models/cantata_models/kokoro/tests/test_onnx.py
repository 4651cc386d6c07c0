"""The ONNX form: what is found in a folder, what is heard, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch

from cantata.audio.pcm import encode_s16le
from cantata.config.plugins import locate
from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import ConfigError, InvalidRequest, RequestFailed
from cantata.contract.data.request import SpeechRequest
from cantata.pipeline.plan import plan_services
from cantata_layers.misaki.phones import vocabulary
from cantata_models.kokoro.onnx_voice import OnnxVoice
from cantata_models.kokoro.request_builder import load_builder
from cantata_models.kokoro.tests.network_driver import expect_word_times
from cantata_models.kokoro.tests.onnx_writer import (
    FRAME,
    SILENCE,
    STEP,
    VOICES,
    Export,
    draw_styles,
    write_folder,
    write_network,
    write_styles,
)
from cantata_models.kokoro.voice import CHUNK_S, load_voice
from cantata_models.kokoro.voices import KokoroInput
from served import served_plans

CPU = torch.device("cpu")
TEXT = "She opened the letter, read it twice, and put it back."
RATE = 24_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("onnx") / "made")


@pytest.fixture(scope="module")
def voice(folder: Path) -> OnnxVoice:
    return load(folder)


@pytest.fixture(scope="module")
def given(folder: Path) -> KokoroInput:
    return build(folder, TEXT)


def load(folder: Path) -> OnnxVoice:
    loaded = load_voice(folder, CPU)
    assert isinstance(loaded, OnnxVoice)
    return loaded


def build(folder: Path, text: str, voice: str = "af_heart", speed: float = 1.0) -> KokoroInput:
    (piece,) = load_builder(folder).build("r", SpeechRequest(text, voice, speed))
    found = piece.inputs["voice"]
    assert isinstance(found, KokoroInput)
    return found


def joined(parts: list[Pcm]) -> np.ndarray:
    return np.concatenate([part.samples[:, 0] for part in parts])


def frames_of(inputs: KokoroInput, speed: float = 1.0) -> np.ndarray:
    """As the network of the tests makes them."""
    ids = inputs.phones.astype(np.float32) * np.float32(0.1) / np.float32(speed)
    return np.maximum(np.round(ids), 1)


def tone(inputs: KokoroInput, style: np.ndarray) -> np.ndarray:
    """The sound that the network of the tests makes."""
    places = np.arange(int(frames_of(inputs).sum()) * FRAME)
    return np.where(places < SILENCE, 0, np.sin(places * STEP) * style.mean())


def test_the_folder_is_known_by_the_model_s_name(folder: Path) -> None:
    located = locate(f"kokoro={folder}")
    assert (located.plugin.name, located.checkpoint) == ("kokoro", folder)


def test_voices_and_languages_are_the_torch_form_s(folder: Path) -> None:
    builder = load_builder(folder)
    assert [voice.id for voice in builder.voices] == ["af_heart", "am_adam", "bf_emma", "ef_dora"]
    assert builder.voices[2].description == "British English, female"
    american, british = (build(folder, "The last bath.", name) for name in ("af_heart", "bf_emma"))
    assert list(american.phones) != list(british.phones)
    assert len(build(folder, "[[ola]], [[mundo]]!", "ef_dora").words) == 2
    assert len(build(folder, "Hola, mundo.", "ef_dora").words) == 2
    with pytest.raises(InvalidRequest, match="nothing in the text can be read"):
        build(folder, "你好", "ef_dora")


def test_a_sentence_is_the_network_s_sound_in_parts(voice: OnnxVoice, given: KokoroInput) -> None:
    parts = list(voice.synthesize(replace(given, begins=False)))
    style = draw_styles()["af_heart"][len(given.phones) - 3]
    np.testing.assert_allclose(joined(parts), tone(given, style), atol=0.02)
    assert all(0 < part.units <= CHUNK_S * RATE for part in parts)
    again = joined(list(voice.synthesize(replace(given, begins=False))))
    np.testing.assert_array_equal(again, joined(parts))


def test_a_mixture_is_between_its_voices(folder: Path, voice: OnnxVoice) -> None:
    mixed = replace(build(folder, TEXT, "af_heart(3)+am_adam"), begins=False)
    rows = [draw_styles()[name][len(mixed.phones) - 3] for name in ("af_heart", "am_adam")]
    expected = tone(mixed, 0.75 * rows[0] + 0.25 * rows[1])
    np.testing.assert_allclose(joined(list(voice.synthesize(mixed))), expected, atol=0.02)


def test_words_have_the_times_of_their_phones(voice: OnnxVoice, given: KokoroInput) -> None:
    first, *rest = voice.synthesize(given)
    assert not any(part.words for part in rest)
    lead = SILENCE / RATE - 0.05
    whole = joined(list(voice.synthesize(replace(given, begins=False))))
    cut = len(whole) - len(joined([first, *rest]))
    assert cut / RATE == pytest.approx(lead, abs=0.001)
    ends = np.append(0, np.cumsum(frames_of(given))) * FRAME / RATE
    times = [(word.start_s + lead, word.end_s + lead) for word in first.words]
    expected = expect_word_times(given.words, ends)
    np.testing.assert_allclose(times[1:], np.maximum(expected[1:], lead), atol=0.001)
    assert len(first.words) == len(TEXT.split())


@pytest.mark.parametrize(
    ("export", "are_timed"),
    [
        (Export("input_ids", "waveform", "/kmodel/Clip_1_output_0"), False),
        (Export("input_ids", "waveform", "/kmodel/Clip_output_0"), True),
        (Export("input_ids", "waveform", "duration", returns_durations=True), True),
        (Export(durations="something"), False),
        (Export(durations="something", note=b"\x12\x0e/Clip_output_0"), False),
        (Export(half_styles=True), True),
    ],
    ids=str,
)
def test_other_exports(tmp_path: Path, given: KokoroInput, export: Export, are_timed: bool) -> None:
    parts = list(load(write_folder(tmp_path, export)).synthesize(given))
    assert bool(parts[0].words) == are_timed
    assert np.abs(joined(parts)).max() > 0.3


def test_speed_is_the_network_s_own(folder: Path, voice: OnnxVoice) -> None:
    for speed in (0.5, 2.0):
        inputs = replace(build(folder, TEXT, speed=speed), begins=False)
        made = joined(list(voice.synthesize(inputs)))
        assert len(made) == frames_of(inputs, speed).sum() * FRAME


def test_a_network_that_takes_whole_speeds_leaves_others_to_the_server(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, Export(whole_speeds=True))
    assert load_builder(folder).capabilities.paces == (1.0, 1.0)
    assert list(load(folder).synthesize(build(folder, TEXT)))


def test_what_the_stage_cannot_speak(voice: OnnxVoice, given: KokoroInput) -> None:
    with pytest.raises(RequestFailed, match="nobody"):
        list(voice.synthesize(replace(given, voices=("nobody",))))
    with pytest.raises(RequestFailed, match="511 phones; it may have 1 to 510"):
        list(voice.synthesize(replace(given, phones=np.full(513, 50, np.int64))))


NETWORK, STYLES = "kokoro-v1.0.onnx", "voices-v1.0.bin"
Edit = Callable[[Path], object]
FAULTS: dict[str, tuple[str, Edit]] = {
    "no network": (r"no \*\.onnx", lambda made: (made / NETWORK).unlink()),
    "two networks": (
        r"has kokoro-v1\.0\.int8\.onnx, kokoro-v1\.0\.onnx",
        lambda made: (made / "kokoro-v1.0.int8.onnx").write_bytes(b""),
    ),
    "empty network": (NETWORK, lambda made: (made / NETWORK).write_bytes(b"")),
    "no ONNX": (NETWORK, lambda made: (made / NETWORK).write_bytes(b"no network")),
    "another network": (
        "no tokens or input_ids",
        lambda made: write_network(made / NETWORK, Export(tokens="text")),
    ),
    "no styles": (STYLES, lambda made: (made / STYLES).unlink()),
    "no archive": (STYLES, lambda made: (made / STYLES).write_bytes(b"no archive")),
    "no voices": ("no voices", lambda made: write_styles(made / STYLES, {})),
    "misshapen": (
        r"af_heart: a voice must be .*\[510, 1, 256\].*\[510, 256\]",
        lambda made: write_styles(made / STYLES, {"af_heart": np.zeros((510, 256), np.float32)}),
    ),
    "no numbers": (
        "af_heart: not a readable array",
        lambda made: write_styles(made / STYLES, {"af_heart": np.array(["loud"])}),
    ),
}


def write_version_1_1(folder: Path) -> Path:
    """As kokoro-onnx names its files, with a vocabulary in an order of its own."""
    made = write_folder(folder)
    (made / NETWORK).rename(made / "kokoro-v1.1-zh.onnx")
    styles = {name: draw_styles()["af_heart"] for name in ("zf_001", "af_maple", "bf_vale")}
    (made / STYLES).unlink()
    write_styles(made / "voices-v1.1-zh.bin", styles)
    letters = {letter: number for number, letter in enumerate(reversed([*vocabulary(), "ㄅ"]), 1)}
    (made / "config.json").write_text(json.dumps({"n_token": 200, "vocab": letters}))
    return made


def test_version_1_1_has_a_vocabulary_of_its_own(tmp_path: Path) -> None:
    made = write_version_1_1(tmp_path)
    builder = load_builder(made)
    assert [voice.id for voice in builder.voices] == ["af_maple", "bf_vale", "zf_001"]
    ids = json.loads((made / "config.json").read_text())["vocab"]
    said = build(made, "Hi!", "af_maple").phones[1:-1]
    assert list(said) == [ids[letter] for letter in "hˈI!"]  # noqa: RUF001
    bopomofo = {letter for letter in builder.phonemize("八百", "z") if letter.isalpha()}
    assert bopomofo == {"ㄅ"}, "letters that the vocabulary lacks are left out"
    assert list(load(made).synthesize(build(made, "Hi!", "af_maple")))
    (made / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"no config\.json"):
        load_builder(made)


def test_a_folder_of_two_versions_is_refused(tmp_path: Path) -> None:
    made = write_folder(tmp_path)
    write_styles(made / "voices-v1.1-zh.bin", draw_styles())
    with pytest.raises(ConfigError, match=r"v1\.0\.bin and voices-v1\.1-zh\.bin; it needs one"):
        load_builder(made)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_folder_is_refused(tmp_path: Path, fault: str) -> None:
    message, edit = FAULTS[fault]
    made = write_folder(tmp_path)
    edit(made)
    with pytest.raises(ConfigError, match=message):
        load_voice(made, CPU)


def test_it_runs_on_the_cpu_alone(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"CPU.*cuda"):
        load_voice(folder, torch.device("cuda"))


def test_any_only_network_serves_and_torch_weights_win(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    (folder / NETWORK).rename(folder / "mine.onnx")
    assert set(load(folder).styles) == set(VOICES)
    (folder / "kokoro-v1_0.pth").touch()
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_voice(folder, CPU)


@pytest.mark.integration
def test_it_is_served(folder: Path, voice: OnnxVoice, tmp_path: Path) -> None:
    body = {"input": TEXT, "voice": "af_heart", "response_format": "pcm"}
    with served_plans(plan_services([f"kokoro={folder}"]), tmp_path) as url:
        response = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=60)
    assert response.status_code == 200, response.text
    made = joined(list(voice.synthesize(build(folder, TEXT))))
    assert response.content == encode_s16le(made[:, None])
