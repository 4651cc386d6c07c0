"""Prompts hold no more control tokens than the layout's, whatever a caller writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cantata.contract.data.errors import InvalidAudio, InvalidRequest
from cantata.contract.data.transcripts import SPEECH_RATE, TranscriptionRequest
from cantata_layers.omni.inputs import SoundFeatures, ThinkerInput
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_asr.plugin import ENCODER, PIPELINE, THINKER
from cantata_models.qwen3_asr.random_checkpoint import token_ids, write_checkpoint
from cantata_models.qwen3_asr.transcription_builder import Qwen3AsrBuilder

Build = Callable[[TranscriptionRequest], ThinkerInput]
SECOND = np.zeros(SPEECH_RATE, np.float32)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), 1)


@pytest.fixture(scope="module")
def builder(checkpoint: Path) -> Qwen3AsrBuilder:
    return Qwen3AsrBuilder(checkpoint)


def build(builder: Qwen3AsrBuilder, request: TranscriptionRequest) -> ThinkerInput:
    made = builder.build("r", request, SECOND).inputs[THINKER]
    assert isinstance(made, ThinkerInput)
    return made


def test_the_whole_prompt_is_the_published_one(builder: Qwen3AsrBuilder, checkpoint: Path) -> None:
    made = build(builder, TranscriptionRequest("en-GB", "Names: Ada."))
    tokenizer = load_qwen_tokenizer(checkpoint)
    text = tokenizer.decode(made.tokens.tolist(), skip_special_tokens=False)
    assert text == (
        "<|im_start|>system\nNames: Ada.<|im_end|>\n<|im_start|>user\n<|audio_start|>"
        + "<|audio_pad|>" * 13
        + "<|audio_end|><|im_end|>\n<|im_start|>assistant\nlanguage English<asr_text>"
    )
    assert set(made.tokens[made.media]) == {token_ids()["<|audio_pad|>"]}


@pytest.mark.parametrize(
    "written",
    ["<|im_end|>", "<|audio_pad|>", "<asr_text>", "<asr_te<asr_text>xt>", "<|im_<|x|>start|>"],
)
def test_control_tokens_in_a_prompt_are_letters(builder: Qwen3AsrBuilder, written: str) -> None:
    ids = list(token_ids().values())
    plain = build(builder, TranscriptionRequest(prompt="a b"))
    named = build(builder, TranscriptionRequest(prompt=f"a {written} b"))
    for token in ids:
        assert np.sum(named.tokens == token) == np.sum(plain.tokens == token)


def test_equal_prompts_before_different_sounds_are_alike_to_the_cache(
    builder: Qwen3AsrBuilder,
) -> None:
    request = TranscriptionRequest(prompt="Names: Ada.")
    noise = np.random.default_rng(1).normal(0, 0.1, SPEECH_RATE).astype(np.float32)
    silent, noisy = (builder.build("r", request, one).inputs[THINKER] for one in (SECOND, noise))
    assert isinstance(silent, ThinkerInput)
    assert isinstance(noisy, ThinkerInput)
    first = silent.media[0]
    np.testing.assert_array_equal(silent.identities[:first], noisy.identities[:first])
    assert silent.identities[first] != noisy.identities[first]


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (TranscriptionRequest(language="fr"), "language"),
        (TranscriptionRequest(language="klingon"), "language"),
        (TranscriptionRequest(prompt="a" * 3000), "prompt"),
        (TranscriptionRequest(translate=True), "task"),
    ],
)
def test_what_cannot_be_served_is_refused(
    builder: Qwen3AsrBuilder, request_: TranscriptionRequest, param: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        build(builder, request_)
    assert refused.value.param == param


@pytest.mark.parametrize(
    "sound", [np.zeros(31 * SPEECH_RATE, np.float32), np.full(9000, np.nan, np.float32)]
)
def test_a_sound_that_is_too_long_or_no_sound_is_refused(
    builder: Qwen3AsrBuilder, sound: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> None:
    with pytest.raises(InvalidAudio):
        builder.build("r", TranscriptionRequest(), sound)


@pytest.mark.parametrize(("samples", "frames"), [(0, 50), (1, 50), (8000, 50), (16_159, 100)])
def test_a_sound_is_filled_up_to_half_a_second(
    builder: Qwen3AsrBuilder, samples: int, frames: int
) -> None:
    sound = np.zeros(samples, np.float32)
    made = builder.build("r", TranscriptionRequest(), sound).inputs[ENCODER]
    assert isinstance(made, SoundFeatures)
    assert made.mels.shape == (128, frames)


def test_the_builder_says_what_the_checkpoint_does(builder: Qwen3AsrBuilder) -> None:
    assert builder.languages == ("zh", "en", "yue", "de", "ja", "fil")
    assert builder.max_window_s == 30.0
    assert builder.output in {edge.source for edge in PIPELINE.edges}
    assert builder.warm_up.dtype == np.float32
