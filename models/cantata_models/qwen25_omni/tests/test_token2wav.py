"""The decoder makes the reference's sound, whole and in windows, alike in every company."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.config import CodecDeployment
from cantata.contract.data.errors import CantataError, InvalidRequest, RequestFailed
from cantata.stages.codec import CodecStage
from cantata_models.qwen25_omni.random_checkpoint import TINY, write_checkpoint
from cantata_models.qwen25_omni.rows import Token2WavInput
from cantata_models.qwen25_omni.tests.parity.scenarios import TOKEN2WAV_SEED
from cantata_models.qwen25_omni.tests.parity.write_goldens import checksum
from cantata_models.qwen25_omni.tests.token2wav_checks import (
    CPU,
    check_whole,
    check_windows,
    codes,
    goldens,
    hear,
)
from cantata_models.qwen25_omni.token2wav import WindowDecoder, block_noise, load_decoder
from threads import threads


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("checkpoint"), TINY, TOKEN2WAV_SEED)


@pytest.fixture(scope="module")
def decoder(checkpoint: Path) -> WindowDecoder:
    return load_decoder(checkpoint, CPU)


def test_the_checkpoint_is_that_of_the_goldens(checkpoint: Path) -> None:
    assert checksum(checkpoint) == goldens()["checksum"]


def test_codes_decoded_at_once(checkpoint: Path) -> None:
    check_whole(checkpoint)


def test_codes_decoded_in_windows(checkpoint: Path) -> None:
    check_windows(checkpoint)


@pytest.mark.thorough
def test_a_stream_sounds_alike_in_every_company_and_however_its_codes_arrive(
    decoder: WindowDecoder,
) -> None:
    streams = {
        "long": (codes(84), Token2WavInput("Chelsie", seed=1)),
        "short": (codes(40)[::-1], Token2WavInput("Ethan", seed=2)),
        "shortest": (codes(1), Token2WavInput("Ethan", seed=-3)),
    }
    alone = {name: hear(decoder, {name: given}, 200)[name] for name, given in streams.items()}
    for name, (given, _) in streams.items():
        assert len(alone[name]) == len(given) * decoder.samples_per_frame
    for arriving in ((1,), (7, 40, 1)):
        together = hear(decoder, streams, *arriving)
        for name, samples in alone.items():
            np.testing.assert_array_equal(together[name], samples, err_msg=name)


def test_noise_is_fixed_by_seed_and_position() -> None:
    whole = block_noise(5, 0, 2400, 24, 80)
    assert whole.shape == (2400, 80)
    assert whole.dtype == torch.float32
    assert torch.equal(block_noise(5, 2, 30, 24, 80), whole[48:78])
    assert not torch.equal(block_noise(6, 0, 24, 24, 80), whole[:24])
    assert abs(float(whole.mean())) < 0.01
    assert abs(float(whole.std()) - 1) < 0.01
    # No two blocks are alike.
    assert len({block.numpy().tobytes() for block in torch.split(whole, 24)}) == 100


def test_seed_and_speaker_are_heard(decoder: WindowDecoder) -> None:
    def sound(speaker: str, seed: int) -> bytes:
        return hear(decoder, {"a": (codes(12), Token2WavInput(speaker, seed))}, 12)["a"].tobytes()

    assert len({sound("Chelsie", 1), sound("Chelsie", 2), sound("Ethan", 1)}) == 3
    assert sound("Chelsie", 1) == sound("Chelsie", 1)


@pytest.mark.parametrize(
    ("inputs", "error", "said"),
    [
        (Token2WavInput("chelsie"), InvalidRequest, "no speaker 'chelsie'; valid: Chelsie, Ethan"),
        (None, RequestFailed, "has not been told whose voice"),
    ],
)
def test_who_is_not_known_is_refused(
    decoder: WindowDecoder, inputs: Token2WavInput | None, error: type[CantataError], said: str
) -> None:
    stage = CodecStage(decoder, CodecDeployment(slots=1), clock=lambda: 0.0)
    with pytest.raises(error, match=said):
        stage.add("a", inputs, batch=False)
    stage.add("b", Token2WavInput("Chelsie"), batch=False)
