"""Compares the stages with the published code's goldens."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Codes
from cantata_models.moss_tts.codec import AudioDecoder
from cantata_models.moss_tts.plugin import ENCODER
from cantata_models.moss_tts.prompt import MossEncoderInput, MossMode
from cantata_models.moss_tts.tests import codec_checks
from cantata_models.moss_tts.tests.parity.recordings import SAMPLE_RATE, stereo_recording
from cantata_models.moss_tts.tests.parity.scenarios import GOLDENS, Model, MossScenario
from cantata_models.moss_tts.tests.parity.write_codec_goldens import SECONDS, Case
from cantata_models.moss_tts.tests.stage_driver import (
    MossCheckpoints,
    build_request,
    heard,
    make_frames,
)
from cantata_models.moss_tts.tokenizer_config import tokenizer_folder

GAIN = np.float32(10 ** (3 / 20))
"""The most by which Local changes a recording's level."""


def check_speech(checkpoints: MossCheckpoints, scenario: MossScenario) -> None:
    """Fail if a part's frames differ from its golden, or its sound from the golden's."""
    loaded = checkpoints.of(scenario.model, scenario.seed)
    frames = make_frames(loaded, scenario)
    primed = frames if scenario.mode is MossMode.CONTINUATION else []
    parts = loaded.parts(build_request(scenario))
    for inputs, golden in zip(parts, _golden_codes(scenario), strict=True):
        made = loaded.talk({"request": inputs}, *frames)
        np.testing.assert_array_equal(heard(made, "request"), golden)
        sound = loaded.decode(made)
        assert len(sound) == 3840 * len(golden)
        if len(sound):
            folder = checkpoints.path(scenario.model, scenario.seed)
            whole = _decoded(folder, np.concatenate([*primed, golden]))
            np.testing.assert_array_equal(sound, whole[-len(sound) :])


def check_encoder(checkpoints: MossCheckpoints, case: Case) -> None:
    """Fail if the encoder stage makes other frames than the golden's of its recording."""
    loaded = checkpoints.of(Model(case.name), case.checkpoint_seed)
    recording = stereo_recording(SECONDS, case.recording_seed)
    # Local makes it that much louder.
    sent = recording / GAIN if case.name == "local" else recording
    (chunk,) = loaded.encoded("request", {ENCODER: MossEncoderInput(sent, SAMPLE_RATE)})
    assert isinstance(chunk.payload, Codes)
    codes = chunk.payload.values[:, : case.used]
    np.testing.assert_array_equal(codes, codec_checks.golden(case, "encoded"))


@cache
def _decoder(checkpoint: Path, codebooks: int) -> AudioDecoder:
    return AudioDecoder(tokenizer_folder(checkpoint), codebooks, torch.device("cpu"))


def _decoded(checkpoint: Path, codes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Decode [T, Q] frames at once with the checkpoint's decoder; returns [N, 2]."""
    decoder = _decoder(checkpoint, codes.shape[1])
    state, slot = decoder.init_state(1), torch.tensor([0])
    decoder.reset(state, slot)
    sound: NDArray[np.float32] = decoder.decode(state, slot, torch.from_numpy(codes)[None])[
        0
    ].numpy()
    return sound


def _golden_codes(scenario: MossScenario) -> list[NDArray[np.int64]]:
    """Return the [T, Q] frames of each part."""
    with np.load(GOLDENS / "talker.npz") as goldens:
        names = [f"{scenario.name}/{part}/codes" for part in range(10)]
        return [goldens[name].astype(np.int64) for name in names if name in goldens]
