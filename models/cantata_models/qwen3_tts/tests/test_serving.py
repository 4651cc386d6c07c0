"""Serving a checkpoint over HTTP and WebSocket gives exactly the stages' audio."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import httpx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from websockets.asyncio.client import connect

from cantata.audio.pcm import encode_s16le
from cantata.contract.data.request import SpeechRequest
from cantata_models.qwen3_tts.codec import Qwen3TtsDecoder
from cantata_models.qwen3_tts.random_checkpoint import write_checkpoint
from cantata_models.qwen3_tts.request_builder import SAMPLES_PER_FRAME
from cantata_models.qwen3_tts.tests.parity.recordings import SAMPLE_RATE, recording
from cantata_models.qwen3_tts.tests.parity.scenarios import SHAPES
from cantata_models.qwen3_tts.tests.talker_driver import (
    GOLDENS,
    Qwen3TtsTalkers,
    scenario_named,
    speak,
)
from served import served
from sounds import data_url, sound_file
from speech_client import SpeechClient

pytestmark = pytest.mark.vllm

PCM_STRIDE = 37
"""Stride of the samples kept in the goldens."""
SPOKEN = {"input": "The other one is on the table.", "voice": "ryan", "seed": 5, "language": "en"}
FRAMES = 12


def serving(folder: Path, scenario: str) -> Iterator[SpeechClient]:
    """Yield a client of a server for the scenario's checkpoint, in float32."""
    key = scenario_named(scenario).checkpoint
    checkpoint = write_checkpoint(folder / "checkpoint", SHAPES[key.shape], key.kind, key.seed)
    with served(checkpoint, folder / "voices") as url:
        yield SpeechClient(url, {"max_new_tokens": FRAMES + 1})


@pytest.fixture(scope="module")
def custom(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpeechClient]:
    yield from serving(tmp_path_factory.mktemp("custom"), "voice")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpeechClient]:
    yield from serving(tmp_path_factory.mktemp("base"), "in_context_text_trails")


def wav(samples: NDArray[np.float32]) -> bytes:
    return sound_file(samples[:, None], SAMPLE_RATE, subtype="PCM_16")


@pytest.fixture(scope="module")
def usual(custom: SpeechClient) -> bytes:
    """`SPOKEN` at the usual speed."""
    return custom.hear(**SPOKEN)


def by_stages(talkers: Qwen3TtsTalkers) -> bytes:
    """Run the same request through a talker stage and a decoder in this process."""
    key = scenario_named("voice").checkpoint
    loaded = talkers.get(key)
    request = SpeechRequest(
        SPOKEN["input"],  # type: ignore[arg-type]
        "ryan",
        seed=5,
        options={"language": "en", "max_new_tokens": FRAMES + 1},
    )
    (built,) = loaded.builder.build("request", request)
    codes = speak(loaded, {"request": built.inputs})["request"]
    decoder = Qwen3TtsDecoder(talkers.path(key), torch.device("cpu"))
    state, slot = decoder.init_state(1), torch.tensor([0])
    decoder.reset(state, slot)
    with torch.inference_mode():
        samples = decoder.decode(state, slot, torch.from_numpy(codes).long()[None])
    return encode_s16le(samples[0].numpy())


async def arriving(url: str, pieces: list[str], **config: Any) -> bytes:
    """Send text over the WebSocket, split by words; returns the samples of the only utterance."""
    sound = b""
    async with connect(url.replace("http", "ws") + "/v1/audio/speech/stream") as socket:

        async def send(kind: str, **fields: Any) -> None:
            await socket.send(json.dumps({"type": kind, **fields}))

        await send("session.config", split_granularity="word", **config)
        for piece in pieces:
            await send("input.text", text=piece)
            await asyncio.sleep(0)
        await send("input.done")
        async for message in socket:
            if isinstance(message, bytes):
                sound += message
                continue
            event = json.loads(message)
            assert event["type"] != "error", event
            if event["type"] == "input.spoken":
                return sound
    raise AssertionError("the server closed the socket")


def test_what_is_heard_is_what_the_stages_make(usual: bytes, talkers: Qwen3TtsTalkers) -> None:
    assert len(usual) == 2 * FRAMES * SAMPLES_PER_FRAME
    samples = np.frombuffer(usual, "<i2")
    assert np.abs(samples).max() > 300
    assert usual == by_stages(talkers)


async def test_text_that_arrives_by_words_is_heard_as_the_whole(custom: SpeechClient) -> None:
    text = str(SPOKEN["input"])
    options = {"max_new_tokens": FRAMES + 1, "non_streaming_mode": False}
    whole = await asyncio.to_thread(custom.hear, **{**SPOKEN, **options})
    config = {**{key: SPOKEN[key] for key in ("voice", "seed", "language")}, **options}
    for pieces in ([text], list(text), text.split(" ")):
        joined = pieces if "".join(pieces) == text else [p + " " for p in pieces[:-1]] + pieces[-1:]
        assert await arriving(custom.url, joined, **config) == whole


def test_listings_tell_what_the_checkpoint_can_do(custom: SpeechClient, base: SpeechClient) -> None:
    model = custom.describe()
    assert (model["id"], model["sample_rate"]) == ("qwen3-tts", SAMPLE_RATE)
    assert model["capabilities"]["languages"] == ["zh", "en", "de"]
    assert {"language", "task_type", "top_k"} <= set(model["capabilities"]["options"])
    assert not model["capabilities"]["references"]
    voices = httpx.get(f"{custom.url}/v1/audio/voices", timeout=60).json()["voices"]
    assert [voice["id"] for voice in voices] == ["vivian", "ryan", "dylan"]
    assert base.describe()["capabilities"]["references"]


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"language": "Klingon"}, "language", "valid: Auto, Chinese, English, German"),
        ({"task_type": "Base"}, "task_type", "valid: 'CustomVoice'"),
        ({"voice": "nobody"}, "voice", "vivian, ryan, dylan"),
        ({"top_p": 2}, "top_p", "less than or equal to 1"),
        ({"ref_audio": data_url(b"RIFF")}, "ref_audio", "cannot speak like a recording"),
        ({"max_new_tokens": 100_000}, None, "more than the 4096 of this deployment"),
    ],
)
def test_unsupported_options_are_rejected(
    custom: SpeechClient, fields: dict[str, Any], param: str | None, message: str
) -> None:
    custom.assert_refused(param, message, **{**SPOKEN, **fields})


def test_it_speaks_at_every_speed(custom: SpeechClient, usual: bytes) -> None:
    for speed in (0.25, 0.5, 2.0, 4.0):
        length = len(custom.hear(**SPOKEN, speed=speed))
        assert length == pytest.approx(len(usual) / speed, abs=4)


@pytest.mark.parametrize("name", ["mp3", "opus", "aac", "flac", "wav"])
def test_every_format_takes_stretched_sound(custom: SpeechClient, usual: bytes, name: str) -> None:
    usual_s = len(usual) / 2 / SAMPLE_RATE
    sound = custom.hear(**SPOKEN, speed=2.0, response_format=name)
    with av.open(io.BytesIO(sound), "r") as file:
        lengths_s = [frame.samples / frame.sample_rate for frame in file.decode(audio=0)]
    assert sum(lengths_s) == pytest.approx(usual_s / 2, abs=0.2)


def test_a_small_model_says_that_it_ignores_instructions(
    custom: SpeechClient, usual: bytes
) -> None:
    response = custom.post(**SPOKEN, instructions="Whisper.")
    assert response.headers["x-ignored"] == "instructions"
    assert response.content == usual


def test_a_recording_is_continued_as_the_reference_does(base: SpeechClient) -> None:
    scenario = scenario_named("in_context_text_trails")
    assert scenario.recording_seconds is not None
    sound = base.hear(
        input=scenario.text,
        ref_audio=data_url(wav(recording(scenario.recording_seconds))),
        ref_text=scenario.reference_text,
        temperature=0,
        max_new_tokens=scenario.max_new_tokens,
        repetition_penalty=scenario.repetition_penalty,
    )
    goldens = np.load(GOLDENS)
    samples = np.frombuffer(sound, "<i2").astype(np.float32) / 32768
    assert len(samples) == int(goldens[f"{scenario.name}/samples"])
    golden = goldens[f"{scenario.name}/pcm"]
    np.testing.assert_allclose(samples[::PCM_STRIDE], golden, rtol=0, atol=1e-4)


def test_an_uploaded_voice_speaks_as_the_same_recording_does(base: SpeechClient) -> None:
    sound = wav(recording(1.3))
    ada = base.upload(sound)
    fields = {"input": "Hello there.", "seed": 3, "x_vector_only_mode": True}
    own = base.hear(**fields, voice=ada)
    assert own == base.hear(**fields, ref_audio=data_url(sound))
    assert own != base.hear(**fields, ref_audio=data_url(wav(recording(2.0))))
    without_text = base.refuse(input="Hello there.", voice="Ada")
    assert without_text["param"] == "ref_text"
    base.delete(ada)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (recording(0.4), "at least 0.5 s"),
        (np.zeros(2 * SAMPLE_RATE, np.float32), "too quiet"),
        (np.tile(recording(1.0), 61), "longer than 60 s"),
    ],
)
def test_recordings_that_cannot_be_used(
    base: SpeechClient, samples: NDArray[np.float32], message: str
) -> None:
    error = base.refuse(input="Hello.", ref_audio=data_url(wav(samples)), ref_text="Hi.")
    assert (error["param"], error["code"]) == ("ref_audio", "invalid_audio")
    assert message in error["message"]


def test_cloning_wants_a_recording_and_its_words(base: SpeechClient) -> None:
    assert base.refuse(input="Hello.")["param"] == "ref_audio"
    said = base.refuse(input="Hello.", ref_audio=data_url(wav(recording(1.3))))
    assert said["param"] == "ref_text"
    assert "x_vector_only_mode" in said["message"]
