"""The codec and the encoders: numeric parity with the reference, and the streaming contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.contract.data.errors import ConfigError, InvalidAudio
from cantata_models.qwen3_tts.codec import Qwen3TtsDecoder
from cantata_models.qwen3_tts.encoder import load_encoder, load_speaker_encoder
from cantata_models.qwen3_tts.random_checkpoint import write_checkpoint
from cantata_models.qwen3_tts.tests import codec_checks
from cantata_models.qwen3_tts.tests.parity.recordings import random_frames
from cantata_models.qwen3_tts.tests.parity.scenarios import SCENARIOS, SHAPES, Qwen3TtsScenario
from cantata_models.qwen3_tts.tests.parity.write_goldens import (
    CODEC_CHECKPOINT,
    GOLDENS,
    PCM_STRIDE,
    checksum,
)
from cantata_models.qwen3_tts.tests.rounding import SAMPLES
from threads import threads

CPU = torch.device("cpu")
CLONED = [scenario for scenario in SCENARIOS if scenario.reference_text is not None]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The checkpoint behind the codec's goldens."""
    key = CODEC_CHECKPOINT
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder, SHAPES[key.shape], key.kind, key.seed)
    with threads(1):
        yield folder


def test_the_checkpoint_is_the_one_of_the_goldens(checkpoint: Path) -> None:
    expected = json.loads((GOLDENS / "checksums.json").read_text())
    assert checksum(checkpoint) == expected[CODEC_CHECKPOINT.name]


@pytest.mark.parametrize(
    "check",
    [
        codec_checks.check_whole,
        codec_checks.check_streamed,
        codec_checks.check_windowed,
        codec_checks.check_reference_frames,
        codec_checks.check_speaker,
    ],
)
def test_parity(check, checkpoint: Path) -> None:  # type: ignore[no-untyped-def]
    check(checkpoint)


@pytest.mark.parametrize("scenario", CLONED, ids=lambda scenario: scenario.name)
def test_a_cloned_voice_s_recording_is_cut_off(scenario: Qwen3TtsScenario, tmp_path: Path) -> None:
    key, golden = scenario.checkpoint, codec_checks.goldens("talker")
    decoder = Qwen3TtsDecoder(
        write_checkpoint(tmp_path, SHAPES[key.shape], key.kind, key.seed), CPU
    )
    context = golden[f"{scenario.name}/reference_codes"].astype(np.int64)
    spoken = golden[f"{scenario.name}/codes"].astype(np.int64)
    codes = torch.from_numpy(np.concatenate([context, spoken]))[None]
    ours = codec_checks.decode(decoder, codes, 8)[len(context) * decoder.samples_per_frame :]
    # The reference computes the cut by a division, which can place it one sample too early.
    count = int(golden[f"{scenario.name}/samples"])
    early = count - len(ours)
    assert early in (0, 1)
    theirs = golden[f"{scenario.name}/pcm"]
    if early:
        theirs, ours = theirs[1:], ours[PCM_STRIDE - 1 :]
    SAMPLES.check(ours[::PCM_STRIDE], theirs)


@pytest.mark.parametrize("chunks", [(1,), (2, 3), (1, 7)])
def test_streaming_equals_the_whole_to_the_last_bit(
    checkpoint: Path, chunks: tuple[int, ...]
) -> None:
    decoder = Qwen3TtsDecoder(checkpoint, CPU)
    codes = codec_checks.frames(decoder, 78)
    whole = codec_checks.decode(decoder, codes, 78)
    assert np.array_equal(codec_checks.decode(decoder, codes, *chunks), whole)


@pytest.mark.parametrize("frames", [1, 3])
def test_a_row_does_not_depend_on_its_batch(checkpoint: Path, frames: int) -> None:
    decoder, batch = Qwen3TtsDecoder(checkpoint, CPU), 5
    shape = (batch, 4 * frames, decoder.num_codebooks)
    flat = random_frames(batch * 4 * frames, decoder.num_codebooks, decoder.codebook_size)
    codes = torch.from_numpy(flat).view(shape)
    state, slots = decoder.init_state(7), torch.tensor([6, 0, 3, 1, 5])
    together = torch.cat(
        [decoder.decode(state, slots, c) for c in torch.split(codes, frames, 1)], 1
    )
    for row in range(batch):
        alone = codec_checks.decode(decoder, codes[row : row + 1], frames)
        assert np.array_equal(alone, together[row, :, 0].numpy())


def test_a_slot_is_new_after_reset_and_others_are_not(checkpoint: Path) -> None:
    decoder = Qwen3TtsDecoder(checkpoint, CPU)
    codes = codec_checks.frames(decoder, 8).expand(2, -1, -1)
    state, both = decoder.init_state(2), torch.arange(2)
    first = decoder.decode(state, both, codes)
    decoder.reset(state, torch.tensor([1]))
    second = decoder.decode(state, both, codes)
    assert torch.equal(second[1], first[1])
    assert not torch.equal(second[0], first[0])


def test_a_missing_or_misshapen_tensor_is_named(checkpoint: Path, tmp_path: Path) -> None:
    codec = tmp_path / "speech_tokenizer"
    codec.mkdir()
    config = json.loads((checkpoint / "speech_tokenizer" / "config.json").read_text())
    config["decoder_config"]["latent_dim"] = 49
    (codec / "config.json").write_text(json.dumps(config))
    weights = (checkpoint / "speech_tokenizer" / "model.safetensors").read_bytes()
    (codec / "model.safetensors").write_bytes(weights)
    with pytest.raises(ConfigError, match=r"pre_conv.conv.weight' must be \[49, 32, 3\]"):
        Qwen3TtsDecoder(tmp_path, CPU)
    config["encoder_config"]["num_filters"] = 8
    (codec / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"has misshapen encoder\.encoder\."):
        load_encoder(tmp_path)


def test_another_tokenizer_is_rejected(checkpoint: Path, tmp_path: Path) -> None:
    codec = tmp_path / "speech_tokenizer"
    codec.mkdir()
    (codec / "config.json").write_text('{"model_type": "qwen3_tts_tokenizer_25hz"}')
    with pytest.raises(ConfigError, match=r"25hz' is not served; valid: 'qwen3_tts_tokenizer_12hz"):
        Qwen3TtsDecoder(tmp_path, CPU)


def test_a_snippet_has_no_speaker(checkpoint: Path) -> None:
    with pytest.raises(InvalidAudio, match=r"0\.05 s of sound"):
        load_speaker_encoder(checkpoint).embed(torch.zeros(1200))
