"""Through the real stages, requests get the published code's frames and the sound of those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Codes
from cantata.contract.data.errors import ConfigError, InvalidAudio
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata_models.moss_tts import encoder_stage
from cantata_models.moss_tts.codec.decoder import AudioDecoder
from cantata_models.moss_tts.codec.locating import INSIDE, tokenizer_folder
from cantata_models.moss_tts.codec_stage import load_local_decoder
from cantata_models.moss_tts.inputs import EncoderInput
from cantata_models.moss_tts.pipeline import ENCODER
from cantata_models.moss_tts.prompt import Mode
from cantata_models.moss_tts.random_checkpoint.codec_configs import TINY_LOCAL as LOCAL_CODEC
from cantata_models.moss_tts.random_checkpoint.talker_configs import TINY_LOCAL
from cantata_models.moss_tts.random_checkpoint.write_codec import write_codec
from cantata_models.moss_tts.random_checkpoint.write_talker import write_local
from cantata_models.moss_tts.tests import codec_checks
from cantata_models.moss_tts.tests.parity.recordings import SAMPLE_RATE, stereo_recording
from cantata_models.moss_tts.tests.parity.scenarios import GOLDENS, SCENARIOS, Model, Scenario
from cantata_models.moss_tts.tests.parity.write_codec_goldens import CASES, SECONDS, Case
from cantata_models.moss_tts.tests.stage_driver import Checkpoints, frames_of, heard, request_of

pytestmark = [
    pytest.mark.integration,
    # vLLM's imports and start-up cause torch deprecation warnings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

ONE_RECORDING = [scenario for scenario in SCENARIOS if len(scenario.recordings) < 2]
"""Requests have no more."""
LOAD_ENCODER = {
    Model.LOCAL: encoder_stage.load_local_encoder,
    Model.NANO: encoder_stage.load_nano_encoder,
}
GAIN = np.float32(10 ** (3 / 20))
"""The most by which Local changes a recording's level."""

Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkpoints]:
    checkpoints = Checkpoints(tmp_path_factory.mktemp("moss_tts"))
    yield checkpoints
    checkpoints.close()


def decoded(checkpoint: Path, codes: NDArray[np.int64]) -> Floats:
    """Decode [T, Q] frames at once with the checkpoint's decoder; returns [N, 2]."""
    decoder = AudioDecoder(tokenizer_folder(checkpoint), codes.shape[1], torch.device("cpu"))
    state, slot = decoder.init_state(1), torch.tensor([0])
    decoder.reset(state, slot)
    sound: Floats = decoder.decode(state, slot, torch.from_numpy(codes)[None])[0].numpy()
    return sound


def golden_codes(scenario: Scenario) -> list[NDArray[np.int64]]:
    """Return the [T, Q] frames of each part."""
    with np.load(GOLDENS / "talker.npz") as goldens:
        names = [f"{scenario.name}/{part}/codes" for part in range(10)]
        return [goldens[name].astype(np.int64) for name in names if name in goldens]


@pytest.mark.parametrize("scenario", ONE_RECORDING, ids=lambda scenario: scenario.name)
def test_frames_and_sound_are_the_published_code_s(
    checkpoints: Checkpoints, scenario: Scenario
) -> None:
    loaded, frames = checkpoints.get(scenario.model, scenario.seed), None
    frames = frames_of(loaded, scenario)
    primed = frames if scenario.mode is Mode.CONTINUATION else []
    parts = loaded.parts(request_of(scenario))
    for inputs, golden in zip(parts, golden_codes(scenario), strict=True):
        made = loaded.talk({"request": inputs}, *frames)
        np.testing.assert_array_equal(heard(made, "request"), golden)
        sound = loaded.decode(made)
        assert len(sound) == 3840 * len(golden)
        if len(sound):
            folder = checkpoints.folder(scenario.model, scenario.seed)
            whole = decoded(folder, np.concatenate([*primed, golden]))
            np.testing.assert_array_equal(sound, whole[-len(sound) :])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_encoder_stage_makes_the_published_code_s_frames(case: Case, tmp_path: Path) -> None:
    """Of a recording in another level too, which Local puts right first."""
    model = Model(case.name)
    write = write_local if model is Model.LOCAL else None
    recording = stereo_recording(SECONDS, case.recording_seed)
