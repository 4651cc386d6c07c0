"""The served talker gives the same output as the plain one, alone and in a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Codes
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.request import SamplingOptions
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from cantata_models.solo.checkpoint import TALKER_FILE, load_talker, save_checkpoint
from cantata_models.solo.networks.codec_decoder import CodecDecoder
from cantata_models.solo.networks.codec_encoder import CodecEncoder
from cantata_models.solo.networks.talker import SoloTalkerNetwork
from cantata_models.solo.plugin import PIPELINE, TalkerInput
from cantata_models.solo.tests.small_models import SMALL

pytestmark = pytest.mark.vllm

TALKER = PIPELINE.stage("talker")
DEPLOYMENT = ArDeployment(slots=8, max_model_len=256)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, with codebook entries as far apart as the latents."""
    folder = tmp_path_factory.mktemp("solo")
    torch.manual_seed(0)
    talker = SoloTalkerNetwork(SMALL)
    codec = SMALL.codec
    books = torch.randn(codec.codebooks, codec.codebook_size, codec.latent_size)
    talker.set_codebooks(books * 0.5 ** torch.arange(codec.codebooks)[:, None, None])
    nn.init.normal_(talker.frame_embedding.first)
    nn.init.normal_(talker.latent_head.out.weight, std=0.2)
    nn.init.constant_(talker.text_track.duration_out.bias, 2.5)
    nn.init.normal_(talker.text_track.stock_speakers)
    save_checkpoint(folder, SMALL, talker, CodecDecoder(codec), CodecEncoder(codec))
    return folder


@pytest.fixture(scope="module")
def stage(checkpoint: Path) -> Iterator[Stage]:
    stage = build_stage(TALKER, checkpoint, DEPLOYMENT)
    yield stage
    assert set(stage.get_counts().values()) == {0}
    stage.close()


def vector(seed: int) -> np.ndarray:
    """A plausible speaker vector of a recording."""
    return np.random.default_rng(seed).normal(size=SMALL.text.speaker_size).astype(np.float32)


def payloads() -> dict[str, TalkerInput]:
    random = np.random.default_rng(1)
    return {
        f"r{index}": TalkerInput(
            phones=random.integers(0, SMALL.text.phones, size=3 + 4 * index),
            word_starts=random.random(3 + 4 * index) < 0.3,
            question=index % 2 == 0,
            speaker=index % 2 if index < 6 else vector(index),
            speed=0.8 + 0.1 * index,
            distinct=index % 2 == 1,
            sampling=SamplingOptions(),
        )
        for index in range(8)
    }


@pytest.fixture(scope="module")
def expected(checkpoint: Path) -> dict[str, np.ndarray]:
    talker = load_talker(checkpoint)
    spoken = {}
    for name, payload in payloads().items():
        speaker = payload.speaker
        stock = talker.text_track.stock_speakers
        track = talker.text_track.forward_track(
            torch.from_numpy(payload.phones),
            torch.from_numpy(payload.word_starts),
            payload.question,
            stock[speaker] if isinstance(speaker, int) else torch.from_numpy(speaker),
            payload.speed,
            distinct=payload.distinct,
        )
        spoken[name] = talker.generate(track.rows).numpy()
    return spoken


def speak(stage: Stage, requests: dict[str, TalkerInput]) -> dict[str, np.ndarray]:
    codes: dict[str, list[np.ndarray]] = {name: [] for name in requests}
    for name, payload in requests.items():
        stage.add(name, payload, batch=False)
    while stage.has_work():
        for chunk in stage.step().chunks:
            assert isinstance(chunk.payload, Codes)
            codes[chunk.request_id].append(chunk.payload.values[chunk.payload.context_frames :])
    return {name: np.concatenate(parts) for name, parts in codes.items()}


def test_alone(stage: Stage, expected: dict[str, np.ndarray]) -> None:
    for name, payload in payloads().items():
        np.testing.assert_array_equal(speak(stage, {name: payload})[name], expected[name])


def test_eight_at_once(stage: Stage, expected: dict[str, np.ndarray]) -> None:
    for name, codes in speak(stage, payloads()).items():
        np.testing.assert_array_equal(codes, expected[name], err_msg=name)


def test_the_utterances_differ(expected: dict[str, np.ndarray]) -> None:
    assert len({codes.tobytes() for codes in expected.values()}) == len(expected)
    assert all(len(np.unique(codes)) > 8 for codes in expected.values())


def test_sampled_code0_is_seeded(stage: Stage, expected: dict[str, np.ndarray]) -> None:
    first, again, other = (
        speak(stage, {"r7": replace(payloads()["r7"], sampling=sampling)})["r7"]
        for sampling in (
            SamplingOptions(1, temperature=2.0),
            SamplingOptions(1, temperature=2.0),
            SamplingOptions(2, temperature=2.0),
        )
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert len(first) == len(expected["r7"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 9.0}, "speed must be"),
        ({"phones": np.zeros(0, np.int64), "word_starts": np.zeros(0, bool)}, "not empty"),
    ],
)
def test_bad_payloads_are_rejected(stage: Stage, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        stage.add("bad", replace(payloads()["r1"], **change), batch=False)


def test_a_folder_without_weights(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
    with pytest.raises(ConfigError, match=TALKER_FILE):
        build_stage(TALKER, tmp_path, DEPLOYMENT)
