"""Code2wav: the reference's sound, in chunks of any sizes, in any slot and company."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError
from cantata_models.qwen3_omni.code2wav import Code2Wav, load_decoder
from cantata_models.qwen3_omni.random_checkpoint import write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import TINY
from cantata_models.qwen3_omni.tests.parity.scenarios import GOLDENS, SCENARIOS
from cantata_models.qwen3_omni.tests.parity.write_goldens import (
    CODEC_FRAMES,
    PCM_STRIDE,
    checksum,
    codec_frames,
)
from threads import threads

CPU = torch.device("cpu")
LAG = 555
SAMPLES = 1e-4
"""Allowed difference of a sample in -1..1; random networks amplify rounding."""
SPOKEN = [s.name for s in SCENARIOS if s.speaker is not None and s.seed == 1]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("checkpoint"), TINY, 1)


@pytest.fixture(scope="module")
def decoder(checkpoint: Path) -> Code2Wav:
    return load_decoder(checkpoint, CPU)


@pytest.fixture(scope="module")
def codes(decoder: Code2Wav) -> torch.Tensor:
    """[1, T, Q]"""
    frames = codec_frames(CODEC_FRAMES, decoder.num_codebooks, decoder.codebook_size)
    return torch.from_numpy(frames)[None]


def decode(decoder: Code2Wav, codes: torch.Tensor, *chunks: int) -> NDArray[np.float32]:
    """Decode [1, T, Q] in slot 1 of 2, cycling through these chunk lengths; returns [N]."""
    state, slot = decoder.init_state(2), torch.tensor([1])
    parts, turn = [], 0
    while codes.shape[1]:
        now, codes = codes.tensor_split([chunks[turn % len(chunks)]], dim=1)
        parts.append(decoder.decode(state, slot, now)[0, :, 0])
        turn += 1
    samples: NDArray[np.float32] = torch.cat(parts).numpy()
    return samples


def test_the_checkpoint_is_the_one_of_the_goldens(checkpoint: Path) -> None:
    assert checksum(checkpoint) == json.loads((GOLDENS / "checksums.json").read_text())["1"]


@pytest.mark.parametrize("name", ["code2wav", *SPOKEN])
def test_the_sound_is_the_reference_s(decoder: Code2Wav, codes: torch.Tensor, name: str) -> None:
    with np.load(GOLDENS / "omni.npz") as goldens:
        if name != "code2wav":
            codes = torch.from_numpy(goldens[f"{name}/codes"].astype(np.int64))[None]
        count, wave = int(goldens[f"{name}/samples"]), goldens[f"{name}/wave"]
    samples = decode(decoder, codes, 5, 30)
    assert len(samples) == 1920 * codes.shape[1] == count + LAG
    assert decoder.leading_silence == LAG
    assert not samples[:LAG].any()
    np.testing.assert_allclose(samples[LAG:][::PCM_STRIDE], wave, rtol=0, atol=SAMPLES)


@pytest.mark.parametrize("chunks", [(1,), (2, 3), (1, 7), (71, 1)])
def test_streaming_equals_the_whole_to_the_last_bit(
    decoder: Code2Wav, codes: torch.Tensor, chunks: tuple[int, ...]
) -> None:
    whole = decode(decoder, codes[:, :80], 80)
    np.testing.assert_array_equal(decode(decoder, codes[:, :80], *chunks), whole)


@pytest.mark.parametrize("frames", [1, 3])
def test_a_row_does_not_depend_on_its_batch(
    decoder: Code2Wav, codes: torch.Tensor, frames: int
) -> None:
    """Streams begin at different times, so that some have a lead and some have none."""
    state, slots = decoder.init_state(7), torch.tensor([6, 0, 3, 1, 5])
    streams = codes[0, : 5 * 4 * frames].view(5, 4 * frames, -1)
    made: list[list[torch.Tensor]] = [[] for _ in slots]
    for step in range(8):
        rows = [row for row in range(5) if row <= step < row + 4]
        now = torch.stack([streams[r, (step - r) * frames :][:frames] for r in rows])
        for row, samples in zip(rows, decoder.decode(state, slots[rows], now), strict=True):
            made[row].append(samples[:, 0])
    for row, parts in enumerate(made):
        alone = decode(decoder, streams[row : row + 1], frames)
        np.testing.assert_array_equal(torch.cat(parts).numpy(), alone)


def test_a_slot_is_new_after_reset_and_others_are_not(
    decoder: Code2Wav, codes: torch.Tensor
) -> None:
    twice = codes[:, :8].expand(2, -1, -1)
    state, both = decoder.init_state(2), torch.arange(2)
    first = decoder.decode(state, both, twice)
    decoder.reset(state, torch.tensor([1]))
    second = decoder.decode(state, both, twice)
    assert torch.equal(second[1], first[1])
    assert not torch.equal(second[0], first[0])


def test_the_declared_size_of_a_slot_is_what_it_takes(decoder: Code2Wav) -> None:
    state = decoder.init_state(3)
    taken = state.positions.nbytes + sum(history.nbytes for history in state.histories)
    assert taken == 3 * decoder.slot_bytes


def test_a_misshapen_tensor_and_a_checkpoint_without_speech_are_refused(
    checkpoint: Path, tmp_path: Path
) -> None:
    for file in checkpoint.iterdir():
        (tmp_path / file.name).symlink_to(file)
    config = json.loads((checkpoint / "config.json").read_text())
    (tmp_path / "config.json").unlink()
    config["code2wav_config"]["decoder_dim"] = 80
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"decoder.0.conv.weight' must be \[80, 48, 7\]"):
        load_decoder(tmp_path, CPU)
    (tmp_path / "config.json").write_text(json.dumps(config | {"enable_audio_output": False}))
    with pytest.raises(ConfigError, match="there is no talker"):
        load_decoder(tmp_path, CPU)
