"""What becomes of a request's text and fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata_layers.random_tensors import write_json
from cantata_models.voxcpm2.plugin import ENCODER, TALKER
from cantata_models.voxcpm2.prompt import (
    VoxCpm2EncoderInput,
    VoxCpm2Mode,
    VoxCpm2TalkerInput,
    VoxCpm2Tokenizer,
)
from cantata_models.voxcpm2.random_checkpoint import TINY, write_tokenizer
from cantata_models.voxcpm2.request_builder import (
    MAX_FRAMES,
    VoxCpm2RequestBuilder,
    load_builder,
)

HELLO = (3, 43, 72, 79, 79, 82, 17)
""""Hello." in the tiny vocabulary."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("checkpoint")
    write_json(folder / "config.json", TINY)
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def builder(folder: Path) -> VoxCpm2RequestBuilder:
    return load_builder(folder)


def ask(
    text: str = "Hello.", *, recording: bool = False, transcript: str | None = None, **fields: Any
) -> SpeechRequest:
    samples = np.linspace(-0.5, 0.5, 48_000, dtype=np.float32).reshape(-1, 2)
    reference = ReferenceAudio(samples, 24_000, transcript) if recording else None
    return SpeechRequest(text, "default", reference=reference, **fields)


def talker(builder: VoxCpm2RequestBuilder, request: SpeechRequest) -> VoxCpm2TalkerInput:
    (built,) = builder.build("r", request)
    made = built.inputs[TALKER]
    assert isinstance(made, VoxCpm2TalkerInput)
    return made


def test_a_plain_request(builder: VoxCpm2RequestBuilder) -> None:
    (built,) = builder.build("r", ask(seed=7))
    assert built.request_id == "r-0"
    assert set(built.inputs) == {TALKER}, "no recording, no encoder"
    made = talker(builder, ask(seed=7))
    assert (made.text, made.mode) == (HELLO, VoxCpm2Mode.PLAIN)
    assert (made.steps, made.guidance, made.sampling.seed) == (10, 2.0, 7)
    assert made.max_frames == 6 * len(HELLO) + 10


@pytest.mark.parametrize(
    ("transcript", "mode", "meant"),
    [
        (None, None, VoxCpm2Mode.CLONE),
        (" \n", None, VoxCpm2Mode.CLONE),
        ("Hi. ", None, VoxCpm2Mode.CONTINUATION),
        ("Hi. ", "voice_clone", VoxCpm2Mode.CLONE),
        ("Hi. ", "combined", VoxCpm2Mode.COMBINED),
    ],
)
def test_what_a_recording_is_for(
    builder: VoxCpm2RequestBuilder, transcript: str | None, mode: str | None, meant: VoxCpm2Mode
) -> None:
    request = ask(recording=True, transcript=transcript, options={"mode": mode})
    (built,) = builder.build("r", request)
    made, encoder = talker(builder, request), built.inputs[ENCODER]
    assert isinstance(encoder, VoxCpm2EncoderInput)
    assert made.mode == encoder.mode == meant
    np.testing.assert_array_equal(encoder.samples, request.reference.mono)  # type: ignore[union-attr]
    assert encoder.sample_rate == 24_000
    assert len(made.text) == (len(HELLO) + len("Hi. ") if meant.continues else len(HELLO))
    assert made.max_frames == 6 * len(HELLO) + 10, "the transcript does not lengthen the speech"


def test_a_description_stands_in_brackets(builder: VoxCpm2RequestBuilder) -> None:
    described = talker(builder, ask(instructions=" an  old\nman "))
    assert described.text == talker(builder, ask("(an old man)Hello.")).text
    assert talker(builder, ask(recording=True, instructions="slow")).mode is VoxCpm2Mode.CLONE
    assert talker(builder, ask(instructions=" \n")).text == HELLO, "nothing is described"


def test_white_space_is_one_space(builder: VoxCpm2RequestBuilder) -> None:
    spaced = talker(builder, ask("Hello\n \t there"))
    assert spaced.text == talker(builder, ask("Hello there")).text


def test_seeds_differ_unless_named_and_temperature_means_nothing(
    builder: VoxCpm2RequestBuilder,
) -> None:
    first, second = (talker(builder, ask()).sampling.seed for _ in range(2))
    assert first != second
    assert talker(builder, ask(seed=1, temperature=0.7)) == talker(builder, ask(seed=1))


def test_limits_of_a_request_s_length(builder: VoxCpm2RequestBuilder) -> None:
    assert talker(builder, ask(options={"max_new_tokens": 3})).max_frames == 3
    assert talker(builder, ask(options={"max_new_tokens": 3000})).max_frames == 52
    assert talker(builder, ask("x" * 2000)).max_frames == MAX_FRAMES


@pytest.mark.parametrize(
    ("request_", "param", "message"),
    [
        (ask("... !"), "input", "nothing that can be spoken"),
        (ask(options={"inference_timesteps": 1}), "inference_timesteps", "or equal to 2"),
        (ask(options={"inference_timesteps": 4.5}), "inference_timesteps", "integer"),
        (ask(options={"cfg_value": 11}), "cfg_value", "or equal to 10"),
        (ask(options={"cfg_value": float("nan")}), "cfg_value", "or equal to"),
        (ask(options={"max_new_tokens": 0}), "max_new_tokens", "or equal to 1"),
        (ask(options={"mode": "sing"}), "mode", "'voice_clone', 'continuation' or 'combined'"),
        (ask(options={"mode": "voice_clone"}), "ref_audio", "needs ref_audio"),
        (ask(recording=True, options={"mode": "combined"}), "ref_text", "ref_text is missing"),
        (
            ask(recording=True, transcript="Hi.", instructions="slow"),
            "instructions",
            "read aloud",
        ),
    ],
)
def test_what_cannot_be_served_is_named(
    builder: VoxCpm2RequestBuilder, request_: SpeechRequest, param: str, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message) as raised:
        builder.build("r", request_)
    assert raised.value.param == param


def test_tokens(folder: Path) -> None:
    tokenizer = VoxCpm2Tokenizer(folder)
    assert tokenizer.encode("the other") == (117, 3, 82, 112, 114)
    assert tokenizer.encode("你好世界") == (105, 106, 107, 108), "each word as its characters"
    spelled = tokenizer.encode("<|audio_start|></s>")
    assert not {1, 2, 101} & set(spelled), "a text cannot spell a special token"
    assert len(spelled) == 1 + len("<|audio_start|></s>")


def test_a_tokenizer_that_cannot_be_used_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.json: no readable tokenizer"):
        VoxCpm2Tokenizer(tmp_path)
    whole = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    whole["added_tokens"] = []
    vocabulary = whole["model"]["vocab"]
    vocabulary["<other>"] = vocabulary.pop("<unk>")
    whole["model"]["unk_token"] = "<other>"
    whole["post_processor"] = None
    write_json(tmp_path / "tokenizer.json", whole)
    with pytest.raises(ConfigError, match="has no token '<unk>'"):
        VoxCpm2Tokenizer(tmp_path)
