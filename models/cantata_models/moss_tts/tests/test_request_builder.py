"""What becomes of a request's fields, for both models."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata_layers.random_qwen_tokenizer import write_qwen_tokenizer
from cantata_layers.random_tensors import write_json
from cantata_models.moss_tts import random_checkpoint_codec
from cantata_models.moss_tts.plugin import ENCODER, TALKER
from cantata_models.moss_tts.prompt import MossEncoderInput, MossTalkerInput
from cantata_models.moss_tts.random_checkpoint_codec import write_config
from cantata_models.moss_tts.random_checkpoint_talker import (
    TINY_LOCAL,
    TINY_NANO,
    local_config,
    nano_config,
    write_sentencepiece,
)
from cantata_models.moss_tts.request_builder import (
    LocalRequestBuilder,
    NanoRequestBuilder,
    load_local_builder,
    load_nano_builder,
)
from cantata_models.moss_tts.tokenizer_config import INSIDE

SENTENCES = "The rain is over, and the street smells of wet stone. Nobody asked why. Yes. "
LONG = f"{SENTENCES * 3} Then all was dry."


def _write_codec_config(folder: Path, shape: random_checkpoint_codec.MossCodecShape) -> None:
    (folder / INSIDE).mkdir()
    write_config(folder / INSIDE, shape)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> LocalRequestBuilder:
    folder: Path = tmp_path_factory.mktemp("local")
    write_json(folder / "config.json", local_config(TINY_LOCAL))
    write_qwen_tokenizer(folder, TINY_LOCAL.special_ids)
    _write_codec_config(folder, random_checkpoint_codec.TINY_LOCAL)
    return load_local_builder(folder)


@pytest.fixture(scope="module")
def nano(tmp_path_factory: pytest.TempPathFactory) -> NanoRequestBuilder:
    folder: Path = tmp_path_factory.mktemp("nano")
    write_json(folder / "config.json", nano_config(TINY_NANO))
    write_sentencepiece(folder / "tokenizer.model", TINY_NANO.vocabulary)
    _write_codec_config(folder, random_checkpoint_codec.TINY_NANO)
    return load_nano_builder(folder)


Builder = LocalRequestBuilder | NanoRequestBuilder


@pytest.fixture(params=["local", "nano"])
def builder(request: pytest.FixtureRequest) -> Builder:
    found: Builder = request.getfixturevalue(request.param)
    return found


def ask(
    text: str = "Hello.", *, recording: bool = False, transcript: str | None = None, **fields: Any
) -> SpeechRequest:
    samples = np.zeros((24_000, 1), np.float32)
    reference = ReferenceAudio(samples, 24_000, transcript) if recording else None
    return SpeechRequest(text, "default", reference=reference, **fields)


def talker(builder: Builder, request: SpeechRequest) -> MossTalkerInput:
    (built,) = builder.build("r", request)
    found = built.inputs[TALKER]
    assert isinstance(found, MossTalkerInput)
    return found


def test_what_the_models_offer(local: LocalRequestBuilder, nano: NanoRequestBuilder) -> None:
    for builder in (local, nano):
        assert [voice.id for voice in builder.voices] == ["default"]
        assert "alloy" in builder.voices[0].aliases
        assert builder.capabilities.references
        assert {"mode", "max_new_tokens", "text_top_k"} <= set(builder.capabilities.options)
        (warm_up,) = builder.build("r", builder.warm_up)
        assert warm_up.inputs.keys() == {ENCODER, TALKER}
    assert local.capabilities.instructions
    assert local.capabilities.pauses
    assert {"en", "zh", "de"} <= set(local.capabilities.languages)
    assert "tokens" in local.capabilities.options
    assert not nano.capabilities.instructions
    assert not nano.capabilities.pauses


def test_a_recording_alone_is_imitated_and_one_with_words_continued(builder: Builder) -> None:
    plain, clone, continuation = (
        builder.build("r", request)[0]
        for request in (ask(), ask(recording=True), ask(recording=True, transcript=" Hi, "))
    )
    assert plain.inputs.keys() == {TALKER}
    for built in (clone, continuation):
        encoder = built.inputs[ENCODER]
        assert isinstance(encoder, MossEncoderInput)
        assert (encoder.samples.shape, encoder.sample_rate) == ((24_000, 1), 24_000)
    inputs: list[Any] = [built.inputs[TALKER] for built in (plain, clone, continuation)]
    assert [one.continues for one in inputs] == [False, False, True]
    assert [len(one.prompt.gaps) for one in inputs] == [0, 1, 1]
    assert inputs[2].prompt.gaps[0].position == len(inputs[2].prompt.ids)
    spoken = talker(builder, ask("Hi, Hello.")).prompt.ids
    assert inputs[2].prompt.ids == spoken, "the transcript is in front of the text"
    own = ask(recording=True, transcript="Hi,", options={"mode": "voice_clone"})
    assert talker(builder, own).prompt == inputs[1].prompt


def test_local_describes_the_speech(local: LocalRequestBuilder) -> None:
    bare = talker(local, ask()).prompt.ids
    described = [
        talker(local, ask(instructions="Slowly.")),
        *(
            talker(local, ask(options=options))
            for options in (
                {"language": "de"},
                {"tokens": 40},
                {"quality": "high"},
                {"sound_event": "a door"},
                {"ambient_sound": "rain"},
            )
        ),
    ]
    assert len({bare, *(one.prompt.ids for one in described)}) == 7
    assert talker(local, ask(options={"language": "Auto"})).prompt.ids == bare
    german = talker(local, ask(options={"language": "German"})).prompt
    assert german == described[1].prompt


def test_sampling_is_the_published_program_s_unless_the_request_says_otherwise(
    local: LocalRequestBuilder, nano: NanoRequestBuilder
) -> None:
    for builder, temperature, top_p, penalty in ((local, 1.7, 0.8, 1.0), (nano, 0.8, 0.95, 1.2)):
        usual = talker(builder, ask(seed=4)).sampling
        assert (usual.seed, usual.temperature, usual.top_k) == (4, temperature, 25)
        assert (usual.top_p, usual.repetition_penalty) == (top_p, penalty)
        assert usual.residual_repetition_penalty == penalty
        assert (usual.stop_temperature, usual.stop_top_k, usual.stop_top_p) == (1.0, 50, 1.0)
        options = {"repetition_penalty": 1.5, "top_k": 0, "text_top_p": 0.5}
        own = talker(builder, ask(temperature=0.5, options=options)).sampling
        assert (own.temperature, own.top_k, own.stop_top_p) == (0.5, 0, 0.5)
        assert (own.repetition_penalty, own.residual_repetition_penalty) == (1.5, 1.5)
        greedy = talker(builder, ask(temperature=0.0)).sampling
        assert (greedy.temperature, greedy.stop_temperature) == (0.0, 0.0)
        drawing = ask(temperature=0.0, options={"text_temperature": 0.7})
        assert talker(builder, drawing).sampling.stop_temperature == 0.7
        assert talker(builder, ask()).sampling.seed != talker(builder, ask()).sampling.seed


def test_nano_imitates_in_parts_with_silence_between(nano: NanoRequestBuilder) -> None:
    options = {"max_new_tokens": 30}
    parts = nano.build("r", ask(LONG, recording=True, seed=7, options=options))
    assert len(parts) > 2
    assert [part.request_id for part in parts] == [f"r-{n}" for n in range(len(parts))]
    assert parts[0].silence_before_s == 0
    assert {part.silence_before_s for part in parts[1:]} <= {0.24, 0.4}
    inputs: list[Any] = [part.inputs[TALKER] for part in parts]
    assert len({one.prompt.ids for one in inputs}) > 1
    assert [one.sampling.seed for one in inputs] == list(range(7, 7 + len(parts)))
    assert {one.max_frames for one in inputs} == {30}
    assert all(part.inputs[ENCODER] is parts[0].inputs[ENCODER] for part in parts)


def test_other_texts_stay_whole(local: LocalRequestBuilder, nano: NanoRequestBuilder) -> None:
    whole = {"voice_clone_max_text_tokens": 0}
    assert len(nano.build("r", ask(LONG))) == 1
    assert len(nano.build("r", ask(LONG, recording=True, transcript="Hi."))) == 1
    assert len(nano.build("r", ask(LONG, recording=True, options=whole))) == 1
    assert len(local.build("r", ask(LONG, recording=True))) == 1


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"text": "..."}, "input", "nothing that can be spoken"),
        ({"options": {"mode": "voice_clone"}}, "ref_audio", "needs ref_audio"),
        ({"options": {"mode": "continuation"}, "recording": True}, "ref_text", "ref_text is"),
        ({"options": {"top_p": 2.0}}, "top_p", "less than or equal to 1"),
        ({"options": {"voices": 2}}, "voices", "Extra inputs"),
    ],
)
def test_fields_that_cannot_be_served_are_named(
    builder: Builder, fields: dict[str, Any], param: str, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message) as refusal:
        builder.build("r", ask(**fields))
    assert refusal.value.param == param


def test_local_names_its_languages_and_where_a_length_is_for(local: LocalRequestBuilder) -> None:
    with pytest.raises(InvalidRequest, match="valid: Auto, Chinese"):
        local.build("r", ask(options={"language": "Klingon"}))
    continued = ask(recording=True, transcript="Hi.", options={"tokens": 40})
    with pytest.raises(InvalidRequest, match="tokens is not for a continuation"):
        local.build("r", continued)


@pytest.mark.parametrize("codes", [None, 32], ids=["missing", "another"])
def test_the_audio_tokenizer_is_checked_before_a_stage_starts(
    tmp_path: Path, codes: int | None
) -> None:
    write_json(tmp_path / "config.json", nano_config(TINY_NANO))
    write_sentencepiece(tmp_path / "tokenizer.model", TINY_NANO.vocabulary)
    wanted = "MOSS-Audio-Tokenizer-Nano' is missing; download it into"
    if codes is not None:
        shape = dataclasses.replace(random_checkpoint_codec.TINY_NANO, codebook_size=codes)
        _write_codec_config(tmp_path, shape)
        wanted = "codebooks of 32 codes; those of .* have 64"
    with pytest.raises(ConfigError, match=wanted):
        load_nano_builder(tmp_path)
