"""Serving either model over HTTP gives exactly the stages' sound."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from cantata.audio.pcm import encode_s16le
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata_bench.server import stage_gauges
from cantata_models.moss_tts.plugin import ENCODER
from cantata_models.moss_tts.tests.parity.recordings import SAMPLE_RATE, stereo_recording
from cantata_models.moss_tts.tests.parity.scenarios import Model
from cantata_models.moss_tts.tests.stage_driver import WRITERS, MossCheckpoints, MossStages
from served import served
from sounds import data_url
from speech_client import SpeechClient

pytestmark = pytest.mark.vllm

CHECKPOINT_SEED = 1
FRAMES = 6
FRAME_BYTES = 3840 * 2 * 2
SPOKEN = {"input": "The other one is on the table.", "seed": 5}
PARTS = "The rain is over, and the street smells of wet stone. Yes. Nobody asked why. " * 2
RECORDING = stereo_recording(1.1, 1)


def serving(folder: Path, model: Model) -> AbstractContextManager[str]:
    """Serve a checkpoint in float32."""
    return served(WRITERS[model](folder / "checkpoint", CHECKPOINT_SEED), folder / "voices")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[Model, SpeechClient]]:
    """Clients of both."""
    with ExitStack() as stack:
        made = ((model, serving(tmp_path_factory.mktemp(model.value), model)) for model in Model)
        yield {
            model: SpeechClient(stack.enter_context(server), {"max_new_tokens": FRAMES})
            for model, server in made
        }


@pytest.fixture
def local(servers: Mapping[Model, SpeechClient]) -> SpeechClient:
    return servers[Model.LOCAL]


@pytest.fixture
def nano(servers: Mapping[Model, SpeechClient]) -> SpeechClient:
    return servers[Model.NANO]


@pytest.fixture(params=list(Model), ids=lambda model: model.value)
def model(request: pytest.FixtureRequest) -> Model:
    found: Model = request.param
    return found


@pytest.fixture
def client(servers: Mapping[Model, SpeechClient], model: Model) -> SpeechClient:
    return servers[model]


heard = cache(SpeechClient.hear)
"""The sound of a request, asked once for all tests."""


def encodings(client: SpeechClient) -> float:
    """Recordings that the encoder stage has computed."""
    return stage_gauges(client.url, "cantata_stage_encodes_total")[ENCODER]


def wav(samples: NDArray[np.float32]) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(samples.shape[1])
        made.setsampwidth(2)
        made.setframerate(SAMPLE_RATE)
        made.writeframes((samples * 32_768).astype("<i2").tobytes())
    return file.getvalue()


def made_by(
    loaded: MossStages,
    text: str,
    *,
    transcript: str | None = None,
    recording: NDArray[np.float32] | None = None,
    instructions: str | None = None,
    **options: Any,
) -> bytes:
    """Run the same request through stages in this process."""
    reference = None
    if recording is not None:
        reference = ReferenceAudio(recording, SAMPLE_RATE, transcript)
    request = SpeechRequest(
        text,
        "default",
        seed=5,
        instructions=instructions,
        reference=reference,
        options={"max_new_tokens": FRAMES, **options},
    )
    sound: list[NDArray[np.float32]] = []
    for built in loaded.built(request):
        silence = round(built.silence_before_s * SAMPLE_RATE)
        sound.append(np.zeros((silence, 2), np.float32))
        sound.append(loaded.decode(loaded.talk({"request": built.inputs})))
    return encode_s16le(np.concatenate(sound))


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"recording": RECORDING},
        {"recording": RECORDING[:, :1]},
        {"recording": RECORDING, "transcript": "It rained all day,"},
        {"recording": RECORDING, "transcript": "It rained.", "mode": "voice_clone"},
    ],
    ids=["plain", "clone", "mono", "continuation", "clone_with_words"],
)
def test_what_is_heard_is_what_the_stages_make(
    client: SpeechClient, model: Model, checkpoints: MossCheckpoints, fields: dict[str, Any]
) -> None:
    sent = {key: value for key, value in fields.items() if key == "mode"}
    if "recording" in fields:
        sent["ref_audio"] = data_url(wav(fields["recording"]))
    if "transcript" in fields:
        sent["ref_text"] = fields["transcript"]
    sound = heard(client, **SPOKEN, **sent)
    assert sound == made_by(checkpoints.of(model, CHECKPOINT_SEED), SPOKEN["input"], **fields)  # type: ignore[arg-type]
    assert 0 < len(sound) <= FRAMES * FRAME_BYTES
    assert len(sound) % FRAME_BYTES == 0
    left, right = np.frombuffer(sound, "<i2").reshape(-1, 2).T
    assert np.abs(left).max() > 300
    assert (left != right).any()


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": 40},
        {"language": "German"},
        {"instructions": "Speak slowly."},
        {"quality": "high", "sound_event": "a door opens", "ambient_sound": "rain"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_local_follows_descriptions(
    local: SpeechClient, checkpoints: MossCheckpoints, fields: dict[str, Any]
) -> None:
    loaded = checkpoints.of(Model.LOCAL, CHECKPOINT_SEED)
    sound = heard(local, **SPOKEN, **fields)
    assert sound == made_by(loaded, SPOKEN["input"], **fields)  # type: ignore[arg-type]
    assert sound != heard(local, **SPOKEN)


def test_local_reads_pauses_itself_and_nano_gets_silence(
    local: SpeechClient, nano: SpeechClient, checkpoints: MossCheckpoints
) -> None:
    text, seed = "[pause 200ms] One moment [pause 300ms] there it is.", SPOKEN["seed"]
    loaded = checkpoints.of(Model.LOCAL, CHECKPOINT_SEED)
    silence = b"\0" * (4 * SAMPLE_RATE // 5)
    spoken = made_by(loaded, "One moment [pause 0.3s] there it is.")
    assert heard(local, input=text, seed=seed) == silence + spoken
    first, last = (heard(nano, input=one, seed=seed) for one in ("One moment", "there it is."))
    silences = silence, b"\0" * (4 * SAMPLE_RATE * 3 // 10)
    assert heard(nano, input=text, seed=seed) == silences[0] + first + silences[1] + last


def test_nano_imitates_in_parts_with_silence_between(
    nano: SpeechClient, checkpoints: MossCheckpoints
) -> None:
    loaded = checkpoints.of(Model.NANO, CHECKPOINT_SEED)
    options: dict[str, Any] = {"voice_clone_max_text_tokens": 60}
    recording = stereo_recording(1.3, 2)
    before = encodings(nano)
    sound = heard(nano, input=PARTS, seed=5, ref_audio=data_url(wav(recording)), **options)
    assert encodings(nano) == before + 1, "once for all parts"
    assert sound == made_by(loaded, PARTS, recording=recording, **options)
    silence = b"\0" * (round(0.24 * SAMPLE_RATE) * 4)
    assert sound.count(silence) >= 2
    halved = heard(
        nano, input=PARTS, seed=5, ref_audio=data_url(wav(recording)), speed=2.0, **options
    )
    assert len(halved) == pytest.approx(len(sound) / 2, abs=64)


def test_a_wav_is_stereo_at_48_khz(client: SpeechClient) -> None:
    sound = heard(client, **SPOKEN, response_format="wav")
    samples, rate = soundfile.read(io.BytesIO(sound), dtype="int16")
    assert rate == SAMPLE_RATE
    assert samples.shape[1] == 2
    assert samples.tobytes() == heard(client, **SPOKEN)


def test_listings_tell_what_each_model_can_do(local: SpeechClient, nano: SpeechClient) -> None:
    for client, name in ((local, "moss-tts-local"), (nano, "moss-tts-nano")):
        model = client.describe()
        assert (model["id"], model["sample_rate"], model["channels"]) == (name, SAMPLE_RATE, 2)
        assert model["sampled"]
        assert model["capabilities"]["references"]
        assert model["capabilities"]["pauses"] is (client is local)
        assert model["capabilities"]["instructions"] is (client is local)
        assert ("tokens" in model["capabilities"]["options"]) is (client is local)


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"top_p": 2}, "top_p", "less than or equal to 1"),
        ({"voice": "nobody"}, "voice", "default"),
        ({"mode": "voice_clone"}, "ref_audio", "needs ref_audio"),
        ({"mode": "continuation", "ref_audio": data_url(wav(RECORDING))}, "ref_text", "ref_text"),
        ({"ref_audio": data_url(wav(RECORDING[:9_000]))}, "ref_audio", "at least 0.5 s"),
        ({"max_new_tokens": 100_000}, None, "of this deployment"),
    ],
)
def test_what_cannot_be_served_is_named(
    client: SpeechClient, fields: dict[str, Any], param: str | None, message: str
) -> None:
    client.assert_refused(param, message, **{**SPOKEN, **fields})


def test_local_names_its_languages(local: SpeechClient) -> None:
    local.assert_refused("language", "valid: Auto, Chinese", **SPOKEN, language="Klingon")


def test_an_uploaded_voice_speaks_as_its_recording_does(client: SpeechClient) -> None:
    sound = wav(RECORDING)
    own = heard(client, **SPOKEN, voice=client.upload(sound))
    assert own == heard(client, **SPOKEN, ref_audio=data_url(sound))
    assert own != heard(client, **SPOKEN)
