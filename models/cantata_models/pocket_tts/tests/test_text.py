"""Texts are cut, put right and tokenized as by the reference package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import SpeechRequest
from cantata_layers.request_building import second_of_noise
from cantata_models.pocket_tts.config import load_config
from cantata_models.pocket_tts.plugin import ENCODER, TALKER
from cantata_models.pocket_tts.prompt import (
    PocketEncoderInput,
    PocketTalkerInput,
    PocketTextReader,
    load_reader,
)
from cantata_models.pocket_tts.request_builder import PocketRequestBuilder, load_builder
from cantata_models.pocket_tts.tests.parity.scenarios import CHECKPOINTS, LONG, TEXTS, write
from cantata_models.pocket_tts.tests.parity.write_goldens import GOLDENS


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By checkpoint."""
    made = tmp_path_factory.mktemp("text")
    return {name: write(name, made) for name in CHECKPOINTS}


@pytest.fixture(scope="module")
def builder(folders: dict[str, Path]) -> PocketRequestBuilder:
    return load_builder(folders["tiny"])


def talker_inputs(builder: PocketRequestBuilder, request: SpeechRequest) -> list[PocketTalkerInput]:
    found = [piece.inputs[TALKER] for piece in builder.build("request", request)]
    assert all(isinstance(one, PocketTalkerInput) for one in found)
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_pieces_are_the_reference_s(folders: dict[str, Path], name: str, number: int) -> None:
    expected = json.loads((GOLDENS / "pieces.json").read_text())[name][number]
    config = load_config(folders[name])
    pieces = load_reader(config).read(TEXTS[number])
    own_frames = config.frames_after_eos
    assert [
        [piece.text, list(piece.tokens), own_frames or piece.frames_after_eos] for piece in pieces
    ] == expected


def test_a_long_text_becomes_requests_of_their_own_seeds(builder: PocketRequestBuilder) -> None:
    requests = builder.build("request", SpeechRequest(LONG, "marius", seed=7))
    assert [request.request_id for request in requests] == [f"request-{i}" for i in range(4)]
    inputs = talker_inputs(builder, SpeechRequest(LONG, "marius", seed=7))
    assert [one.sampling.seed for one in inputs] == [7, 8, 9, 10]
    assert {one.voice for one in inputs} == {"marius"}
    # A third of a second for each token, and two seconds.
    assert [one.max_frames for one in inputs] == [
        -(-(len(one.text) + 6) * 25 // 6) for one in inputs
    ]


def test_a_recording_takes_the_voice_s_place(builder: PocketRequestBuilder) -> None:
    recording = second_of_noise(16_000)
    (request,) = builder.build("request", SpeechRequest("Hello.", "alba", reference=recording))
    encoder, talker = request.inputs[ENCODER], request.inputs[TALKER]
    assert isinstance(encoder, PocketEncoderInput)
    assert isinstance(talker, PocketTalkerInput)
    assert talker.voice is None
    assert encoder.sample_rate == 16_000


def test_settings_are_the_request_s_else_the_checkpoint_s(folders: dict[str, Path]) -> None:
    builder = load_builder(folders["small"])
    (usual,) = talker_inputs(builder, SpeechRequest("Hello.", "alba"))
    assert (usual.temperature, usual.eos_threshold, usual.frames_after_eos) == (0.3, -1.0, 2)
    own = {"eos_threshold": 3.0, "frames_after_eos": 0, "noise_clamp": 2.0, "max_new_tokens": 5}
    request = SpeechRequest("Hello.", "alba", temperature=0.0, options=own)
    (asked,) = talker_inputs(builder, request)
    assert (asked.temperature, asked.eos_threshold, asked.frames_after_eos) == (0.0, 3.0, 0)
    assert (asked.noise_clamp, asked.max_frames) == (2.0, 5)


@pytest.mark.parametrize(
    ("name", "fields", "param"),
    [
        ("tiny", {"text": "..."}, "input"),
        ("tiny", {"options": {"sampler_decode_steps": 0}}, "sampler_decode_steps"),
        ("small", {"options": {"sampler_decode_steps": 2}}, "sampler_decode_steps"),
        ("tiny", {"options": {"noise_clamp": 0}}, "noise_clamp"),
        ("tiny", {"options": {"frames_after_eos": -1}}, "frames_after_eos"),
        ("tiny", {"options": {"lsd": 1}}, "lsd"),
    ],
)
def test_what_cannot_be_served_is_named(
    folders: dict[str, Path], name: str, fields: dict[str, object], param: str
) -> None:
    request = SpeechRequest(**{"text": "Hello.", "voice": "alba", **fields})  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest) as caught:
        load_builder(folders[name]).build("request", request)
    assert caught.value.param == param


def test_voices_are_those_of_the_folder_with_the_usual_one_first(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    assert [voice.id for voice in load_builder(folders["tiny"]).voices] == ["alba", "marius"]
    bare = write("first", tmp_path)
    (bare / "embeddings" / "alba.safetensors").unlink()
    builder = load_builder(bare)
    assert [voice.id for voice in builder.voices] == ["reference"]
    with pytest.raises(InvalidRequest, match="no voices of its own"):
        builder.build("request", SpeechRequest("Hello.", "reference"))


class Letters:
    """A tokenizer of one token for each letter."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in f"_{text}"]

    def decode(self, tokens: list[int]) -> str:
        return "".join(chr(token) for token in tokens).removeprefix("_")


def test_a_comma_cuts_only_a_sentence_that_is_too_long(builder: PocketRequestBuilder) -> None:
    reader = PocketTextReader(Letters(), builder._config.text)  # type: ignore[arg-type]
    short = "Short, this one. " + "a" * 30 + ", " + "b" * 30 + "."
    texts = [" ".join(piece.text.split()) for piece in reader.read(short)]
    assert texts == ["Short, this one. " + "a" * 30 + ".", "B" + "b" * 29 + "."]
