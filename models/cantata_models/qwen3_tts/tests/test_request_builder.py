"""Supported requests for each kind of checkpoint, and the errors for unsupported ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata_models.qwen3_tts.prompt import Qwen3TtsTalkerInput
from cantata_models.qwen3_tts.random_checkpoint import (
    GENERATION_CONFIG,
    TINY_LARGE,
    TINY_SMALL,
    Qwen3TtsShape,
    model_config,
    write_tokenizer,
)
from cantata_models.qwen3_tts.request_builder import Qwen3RequestBuilder, load_builder
from cantata_models.qwen3_tts.tests.test_config import write

Builders = Callable[..., Qwen3RequestBuilder]


@pytest.fixture
def builders(tmp_path: Path) -> Builders:
    """Make builders by kind of checkpoint; no weights are needed."""

    def load(kind: str, shape: Qwen3TtsShape = TINY_LARGE) -> Qwen3RequestBuilder:
        write(tmp_path, model_config(shape, kind), GENERATION_CONFIG)
        write_tokenizer(tmp_path)
        return load_builder(tmp_path)

    return load


def inputs(builder: Qwen3RequestBuilder, request: SpeechRequest) -> Mapping[str, Any]:
    (built,) = builder.build("r", request)
    assert built.request_id == "r-0"
    return built.inputs


def payload(builder: Qwen3RequestBuilder, request: SpeechRequest) -> Qwen3TtsTalkerInput:
    talker: Qwen3TtsTalkerInput = inputs(builder, request)["talker"]
    return talker


def ask(voice: str = "vivian", text: str = "Hello.", **more: Any) -> SpeechRequest:
    return SpeechRequest(text, voice, **more)


def reference(transcript: str | None = "Hi.", seconds: float = 2.0) -> ReferenceAudio:
    samples = np.zeros((int(24_000 * seconds), 1), np.float32)
    return ReferenceAudio(samples, 24_000, transcript)


def test_voices_and_capabilities_of_each_kind(builders: Builders) -> None:
    custom = builders("custom_voice")
    assert [voice.id for voice in custom.voices] == ["vivian", "ryan", "dylan"]
    assert "beijing dialect" in custom.voices[2].description
    assert "alloy" in custom.voices[0].aliases
    assert custom.capabilities.instructions
    assert not custom.capabilities.references
    assert custom.capabilities.languages == ("zh", "en", "de")
    assert not builders("custom_voice", TINY_SMALL).capabilities.instructions
    design, base = builders("voice_design"), builders("base")
    assert (len(design.voices), design.capabilities.instructions) == (1, True)
    assert (len(base.voices), base.capabilities.references) == (1, True)
    for builder in (custom, design, base):
        assert payload(builder, builder.warm_up).max_frames == 12


def test_sampling_comes_from_the_checkpoint_unless_the_request_says_so(builders: Builders) -> None:
    builder = builders("custom_voice")
    default = payload(builder, ask(seed=4)).sampling
    assert default.seed == 4
    assert (default.temperature, default.residual_temperature) == (0.9, 0.9)
    assert (default.top_k, default.repetition_penalty) == (50, 1.05)
    options = {"top_k": 3, "top_p": 0.5, "repetition_penalty": 1.2}
    said = payload(builder, ask(temperature=0.0, options=options)).sampling
    assert (said.temperature, said.residual_temperature) == (0.0, 0.0)
    assert (said.top_k, said.residual_top_k, said.residual_top_p) == (3, 3, 0.5)
    seeds = {payload(builder, ask()).sampling.seed for _ in range(3)}
    assert len(seeds) == 3


def test_where_the_text_stands(builders: Builders) -> None:
    custom, base = builders("custom_voice"), builders("base")
    assert not payload(custom, ask()).streamed
    assert payload(custom, ask(options={"non_streaming_mode": False})).streamed
    clone = ask("reference", reference=reference())
    assert payload(base, clone).streamed
    assert not payload(base, replace(clone, options={"non_streaming_mode": True})).streamed


def test_languages_by_name_and_by_tag(builders: Builders) -> None:
    builder = builders("custom_voice")
    codes = builder._config.languages

    def code(voice: str, language: str | None) -> int | None:
        options = {} if language is None else {"language": language}
        return payload(builder, ask(voice, options=options)).language

    assert code("vivian", None) is None
    assert code("vivian", "auto") is None
    assert code("vivian", "German") == code("vivian", "de") == codes["german"]
    assert code("dylan", None) == code("dylan", "zh") == codes["beijing_dialect"]
    assert code("dylan", "English") == codes["english"]


def test_cloning_by_vector_or_in_context(builders: Builders) -> None:
    builder = builders("base")
    clone = ask("reference", reference=reference())
    continued = inputs(builder, clone)
    assert continued["encoder"].frames
    assert len(continued["talker"].spoken.reference) == 3
    assert continued["encoder"].samples.shape == (48_000,)
    vector = inputs(builder, replace(clone, options={"x_vector_only_mode": True}))
    assert not vector["encoder"].frames
    assert vector["talker"].spoken.reference == ()
    for rate, channels in ((16_000, 1), (48_000, 2)):
        other = ReferenceAudio(np.zeros((2 * rate, channels), np.float32), rate, "Hi.")
        recording = inputs(builder, replace(clone, reference=other))["encoder"]
        assert recording.samples.shape == (48_000,)
    assert "encoder" not in inputs(builders("custom_voice"), ask())


@pytest.mark.parametrize(
    ("kind", "changes", "param", "message"),
    [
        ("custom_voice", {"text": " ... "}, "input", "nothing that can be spoken"),
        (
            "custom_voice",
            {"options": {"task_type": "Song"}},
            "task_type",
            "'VoiceDesign' or 'Base'",
        ),
        ("custom_voice", {"options": {"task_type": "Base"}}, "task_type", "valid: 'CustomVoice'"),
        (
            "custom_voice",
            {"options": {"language": "Klingon"}},
            "language",
            "valid: Auto, Chinese, English, German",
        ),
        ("custom_voice", {"options": {"language": "beijing_dialect"}}, "language", "valid: Auto"),
        ("custom_voice", {"options": {"top_p": 0}}, "top_p", "greater than 0"),
        ("custom_voice", {"options": {"top_k": 1.5}}, "top_k", "valid integer"),
        ("custom_voice", {"options": {"max_new_tokens": 1}}, "max_new_tokens", "equal to 2"),
        ("custom_voice", {"options": {"non_streaming_mode": "no"}}, "non_streaming_mode", "bool"),
        ("base", {"voice": "reference"}, "ref_audio", "send ref_audio"),
        (
            "base",
            {"voice": "reference", "reference": reference(None)},
            "ref_text",
            "ref_text is missing",
        ),
        (
            "base",
            {"voice": "reference", "reference": reference(" ")},
            "ref_text",
            "x_vector_only_mode",
        ),
    ],
)
def test_unsupported_options_are_rejected(
    builders: Builders, kind: str, changes: dict[str, Any], param: str, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message) as refusal:
        builders(kind).build("r", ask(**changes))
    assert refusal.value.param == param


def test_open_text_begins_with_its_first_words(builders: Builders) -> None:
    builder = builders("custom_voice")
    feed = builder.open("r", ask(text=""))
    assert feed.start() is None
    feed.push("Good morning to")
    begun = feed.start()
    assert begun is not None
    talker: Any = begun.inputs[feed.stage]
    assert not talker.spoken.complete
    assert feed.more() is None
    feed.push(" you.")
    feed.close()
    more = feed.more()
    assert more is not None
    assert more.complete
    assert talker.spoken.body + more.body == builder._tokenizer.encode("Good morning to you.")


def test_open_text_beside_a_recording_begins_when_it_reaches_as_far(builders: Builders) -> None:
    clone = ask("reference", "", reference=reference("Hi.", seconds=2.0))
    feed = builders("base").open("r", clone)
    feed.push("x " * 10)
    assert feed.start() is None  # 25 frames need 26 tokens next to them
    feed.push("x " * 10)
    begun = feed.start()
    assert begun is not None
    talker: Any = begun.inputs["talker"]
    assert len(talker.spoken.body) + 3 >= 26


@pytest.mark.parametrize("text", ["", "  "])
def test_open_text_that_stays_empty_is_rejected(builders: Builders, text: str) -> None:
    feed = builders("custom_voice").open("r", ask(text=text))
    feed.close()
    with pytest.raises(InvalidRequest, match="nothing"):
        feed.start()


def test_open_text_cannot_stand_before_the_sound(builders: Builders) -> None:
    with pytest.raises(InvalidRequest, match="needs false"):
        builders("custom_voice").open("r", ask(options={"non_streaming_mode": True}))
