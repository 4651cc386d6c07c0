"""Through the real stages, requests get the published code's frames and the sound of those."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from cantata.contract.data.errors import InvalidAudio, InvalidRequest
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata_models.moss_tts.encoder import load_local_encoder
from cantata_models.moss_tts.plugin import TALKER
from cantata_models.moss_tts.prompt import MossEncoderInput
from cantata_models.moss_tts.tests.parity.recordings import SAMPLE_RATE, stereo_recording
from cantata_models.moss_tts.tests.parity.scenarios import SCENARIOS, Model, MossScenario
from cantata_models.moss_tts.tests.parity.write_codec_goldens import CASES, Case
from cantata_models.moss_tts.tests.stage_checks import check_encoder, check_speech
from cantata_models.moss_tts.tests.stage_driver import MossCheckpoints, heard

pytestmark = pytest.mark.vllm

ONE_RECORDING = [scenario for scenario in SCENARIOS if len(scenario.recordings) < 2]
"""Requests have no more."""


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", ONE_RECORDING, ids=lambda scenario: scenario.name)
def test_frames_and_sound_are_the_published_code_s(
    checkpoints: MossCheckpoints, scenario: MossScenario
) -> None:
    check_speech(checkpoints, scenario)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_encoder_stage_makes_the_published_code_s_frames(
    checkpoints: MossCheckpoints, case: Case
) -> None:
    check_encoder(checkpoints, case)


@pytest.mark.parametrize("model", list(Model))
@pytest.mark.parametrize("transcript", [None, "Hello."], ids=["clone", "continuation"])
def test_a_recording_is_followed_from_encoder_to_sound(
    checkpoints: MossCheckpoints, model: Model, transcript: str | None
) -> None:
    """All three stages: another recording, or none, is other speech."""
    loaded = checkpoints.of(model, 1)
    asked = SpeechRequest("Good day.", "default", temperature=0.0, options={"max_new_tokens": 6})
    said = {b"": loaded.talk({"request": loaded.parts(asked)[0]})}
    for recording in (stereo_recording(1.0, 1), stereo_recording(1.2, 2)[::2, :1]):
        rate = SAMPLE_RATE // (3 - recording.shape[1])
        reference = ReferenceAudio(np.ascontiguousarray(recording), rate, transcript)
        (inputs,) = loaded.parts(replace(asked, reference=reference))
        said[recording.tobytes()] = loaded.talk({"request": inputs})
    assert len({heard(made, "request").tobytes() for made in said.values()}) == 3
    for made in said.values():
        assert np.abs(loaded.decode(made)).max() > 0.01


def test_recordings_are_told_apart_by_samples_channels_and_rate(
    checkpoints: MossCheckpoints,
) -> None:
    encoder = load_local_encoder(checkpoints.path(Model.LOCAL, 1), torch.device("cpu"))
    sound = stereo_recording(0.2, 1)
    inputs = [
        MossEncoderInput(sound, 48_000),
        MossEncoderInput(sound, 44_100),
        MossEncoderInput(sound.reshape(-1, 1), 48_000),
        MossEncoderInput(sound * np.float32(0.5), 48_000),
    ]
    assert len({encoder.key(one) for one in inputs}) == len(inputs)
    assert encoder.key(MossEncoderInput(sound.copy(), 48_000)) == encoder.key(inputs[0])


def test_a_recording_shorter_than_a_frame_fails_alone(checkpoints: MossCheckpoints) -> None:
    encoder = load_local_encoder(checkpoints.path(Model.LOCAL, 1), torch.device("cpu"))
    short, long = (MossEncoderInput(stereo_recording(s, 1), SAMPLE_RATE) for s in (0.05, 0.2))
    refused, made = encoder.run([short, long])
    assert isinstance(refused, InvalidAudio)
    assert "0.05 s of sound; at least 0.08 s" in str(refused)
    assert not isinstance(made, InvalidAudio)


def test_a_prompt_without_room_is_refused(checkpoints: MossCheckpoints) -> None:
    loaded = checkpoints.of(Model.NANO, 1)
    (inputs,) = loaded.parts(SpeechRequest("word " * 200, "default"))
    with pytest.raises(InvalidRequest, match="positions; of the 512 of this deployment none"):
        loaded.network.open(inputs[TALKER])
