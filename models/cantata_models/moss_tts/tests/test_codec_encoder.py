"""The encoder, what it refuses, and what each half of a tokenizer needs of its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cantata.contract.data.errors import ConfigError, InvalidAudio
from cantata_layers.checkpoint import SINGLE_FILE, read_tensors
from cantata_models.moss_tts.encoder import AudioEncoder
from cantata_models.moss_tts.tests import codec_checks
from cantata_models.moss_tts.tests.parity.recordings import stereo_recording
from cantata_models.moss_tts.tests.parity.write_codec_goldens import CASES, Case
from threads import threads


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield codec_checks.write_checkpoints(tmp_path_factory.mktemp("tokenizers"))


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    chosen: Case = request.param
    return chosen


@pytest.fixture
def encoder(case: Case, checkpoints: Path) -> AudioEncoder:
    loaded: AudioEncoder = codec_checks.load_encoder(checkpoints, case)
    return loaded


def only(checkpoints: Path, case: Case, folder: Path, *prefixes: str) -> Path:
    """Write one file with the tensors of these prefixes into a folder of the case's name."""
    target = folder / case.name
    target.mkdir()
    tensors = {
        name: tensor
        for name, tensor in read_tensors(checkpoints / case.name)
        if name.startswith(prefixes)
    }
    save_file(tensors, target / SINGLE_FILE)
    (target / "config.json").write_bytes((checkpoints / case.name / "config.json").read_bytes())
    return folder


def test_a_later_sound_changes_no_earlier_frame(encoder: AudioEncoder) -> None:
    recording = torch.from_numpy(stereo_recording(1.4, 2))
    whole = encoder.encode(recording)
    assert whole.shape == (17, encoder.num_codebooks)
    for frames in (1, 7, 8, 9):
        part = recording[: frames * encoder.samples_per_frame + 100]
        assert torch.equal(encoder.encode(part), whole[:frames])


def test_the_channels_are_told_apart(encoder: AudioEncoder) -> None:
    recording = torch.from_numpy(stereo_recording(0.5, 2))
    assert not torch.equal(encoder.encode(recording), encoder.encode(recording.flip(1)))


def test_less_than_a_frame_is_refused(encoder: AudioEncoder) -> None:
    with pytest.raises(InvalidAudio, match=r"0\.05 s of sound; at least 0\.08 s"):
        encoder.encode(torch.zeros(2_400, 2))


def test_each_half_needs_only_its_own_tensors(
    case: Case, checkpoints: Path, tmp_path: Path
) -> None:
    for half, other in (("encoder", "decoder"), ("decoder", "encoder")):
        (folder := tmp_path / half).mkdir()
        only(checkpoints, case, folder, f"{half}.", "quantizer.")
        loaders = {"encoder": codec_checks.load_encoder, "decoder": codec_checks.load_decoder}
        loaders[half](folder, case)
        with pytest.raises(ConfigError, match=f"no tensor's name starts with '{other}.'"):
            loaders[other](folder, case)


def test_a_missing_or_misshapen_tensor_is_named(
    case: Case, checkpoints: Path, tmp_path: Path
) -> None:
    folder = only(checkpoints, case, tmp_path, "encoder.", "quantizer.") / case.name
    tensors = dict(read_tensors(folder))
    direction = "quantizer.quantizers.1.in_proj.parametrizations.weight.original1"
    tensors[direction] = tensors[direction][:, :-1].contiguous()
    save_file(tensors, folder / SINGLE_FILE)
    with pytest.raises(ConfigError, match=rf"{direction}' must be \[8, 32, 1\], not \[8, 31, 1\]"):
        codec_checks.load_encoder(tmp_path, case)
    scale = "encoder.1.transformer.layers.0.layer_scale_2.scale"
    del tensors[direction], tensors[scale]
    tensors |= {direction: torch.ones(8, 32, 1)}
    save_file(tensors, folder / SINGLE_FILE)
    with pytest.raises(ConfigError, match=f"{scale}' is missing"):
        codec_checks.load_encoder(tmp_path, case)
