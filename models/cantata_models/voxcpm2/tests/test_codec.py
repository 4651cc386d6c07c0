"""The autoencoder: parity with the reference, the streaming contract, and faults that are found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError
from cantata_models.voxcpm2.codec import DepthwiseUnit, RateScale, SoundDecoder
from cantata_models.voxcpm2.config import load_codec_config
from cantata_models.voxcpm2.encoder import BLOCK_PATCHES, SoundEncoder, load_encoder, resampled
from cantata_models.voxcpm2.prompt import VoxCpm2EncoderInput, VoxCpm2Mode
from cantata_models.voxcpm2.random_checkpoint import (
    PUBLISHED,
    TINY,
    TINY_STRETCHED,
    use_pickles,
    write_checkpoint,
)
from cantata_models.voxcpm2.tests.parity.recordings import recording
from cantata_models.voxcpm2.tests.parity.scenarios import TINY_3, scenario_named
from cantata_models.voxcpm2.tests.parity.write_goldens import PCM_STRIDE
from cantata_models.voxcpm2.tests.stage_driver import golden
from threads import threads

CPU = torch.device("cpu")
PCM_TOLERANCE = 1e-3
PLAIN, CONTINUED = scenario_named("plain"), scenario_named("continuation")
Array = NDArray[np.float32]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The checkpoint behind the goldens."""
    with threads(1):
        yield TINY_3.write(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture
def decoder(checkpoint: Path) -> SoundDecoder:
    return SoundDecoder(checkpoint, CPU)


def decode(decoder: SoundDecoder, patches: Array, *lengths: int) -> Array:
    """[T, E] -> [N]: in chunks of these lengths, and what is left in chunks of the last."""
    state, slot = decoder.init_state(1), torch.tensor([0])
    parts, start, rest = [], 0, list(lengths)
    while start < len(patches):
        count = rest.pop(0) if len(rest) > 1 else rest[0]
        chunk = torch.from_numpy(patches[None, start : start + count])
        parts.append(decoder.decode(state, slot, chunk)[0, :, 0].numpy())
        start += count
    return np.concatenate(parts)


def off(ours: Array, scenario: str) -> float:
    theirs = golden(scenario_named(scenario), "pcm")
    return float(np.abs(ours[::PCM_STRIDE] - theirs).max())


def test_decoding_is_the_reference_s(decoder: SoundDecoder) -> None:
    assert off(decode(decoder, golden(PLAIN, "latents"), 1), "plain") < PCM_TOLERANCE


def test_a_continuation_is_the_reference_s_whole_decode(decoder: SoundDecoder) -> None:
    """Which begins with the recording's last three patches; ours leave sooner, one by one."""
    patches = np.concatenate([golden(CONTINUED, "recording")[-3:], golden(CONTINUED, "latents")])
    warm = decode(decoder, patches, 1)[3 * decoder.samples_per_frame :]
    assert off(warm, "continuation") < PCM_TOLERANCE
    assert off(decode(decoder, patches[3:], 1), "continuation") > 10 * PCM_TOLERANCE


@pytest.mark.parametrize("chunks", [(1,), (2, 3), (1, 7)])
def test_streaming_equals_the_whole_to_the_last_bit(
    decoder: SoundDecoder, chunks: tuple[int, ...]
) -> None:
    patches = golden(PLAIN, "latents")
    whole = decode(decoder, patches, len(patches))
    np.testing.assert_array_equal(decode(decoder, patches, *chunks), whole)


@pytest.mark.parametrize("count", [1, 3])
def test_a_row_does_not_depend_on_its_batch(decoder: SoundDecoder, count: int) -> None:
    generator = torch.Generator().manual_seed(1)
    patches = torch.randn(5, 2 * count, decoder.latent_size, generator=generator)
    state, slots = decoder.init_state(7), torch.tensor([6, 0, 3, 1, 5])
    parts = [decoder.decode(state, slots, part) for part in torch.split(patches, count, dim=1)]
    together = torch.cat(parts, dim=1)
    for row in range(5):
        alone = decode(decoder, patches[row].numpy(), count)
        np.testing.assert_array_equal(alone, together[row, :, 0].numpy())


def test_a_slot_is_new_after_reset_and_others_are_not(decoder: SoundDecoder) -> None:
    patches = torch.from_numpy(golden(PLAIN, "latents"))[None, :2].expand(2, -1, -1)
    state, both = decoder.init_state(2), torch.arange(2)
    first = decoder.decode(state, both, patches)
    decoder.reset(state, torch.tensor([1]))
    second = decoder.decode(state, both, patches)
    assert torch.equal(second[1], first[1])
    assert not torch.equal(second[0], first[0])


def wrong_rate(decoder: SoundDecoder, checkpoint: Path, patch: pytest.MonkeyPatch) -> None:
    path = checkpoint / "config.json"
    config = json.loads(path.read_text())
    config["audio_vae_config"]["out_sample_rate"] = 24_000
    path.write_text(json.dumps(config))
    other = SoundDecoder(checkpoint, CPU)
    patch.setattr(decoder, "_stages", other._stages)


def swapped_dilations(decoder: SoundDecoder, checkpoint: Path, patch: pytest.MonkeyPatch) -> None:
    unit = decoder._stages[0][1]._units[1]
    patch.setattr(unit._dilated, "_dilation", 9)


def no_shift_by_rate(decoder: SoundDecoder, checkpoint: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RateScale, "__call__", lambda self, x: x * self._scale)


def no_residual_connection(
    decoder: SoundDecoder, checkpoint: Path, patch: pytest.MonkeyPatch
) -> None:
    call = DepthwiseUnit.__call__
    patch.setattr(DepthwiseUnit, "__call__", lambda self, x, past: call(self, x, past) - x)


def directions_alone(decoder: SoundDecoder, checkpoint: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch, "_weight_norm", lambda direction, length, dim: direction)
    patch.setattr(decoder, "_stages", SoundDecoder(checkpoint, CPU)._stages)


def state_forgotten(decoder: SoundDecoder, checkpoint: Path, patch: pytest.MonkeyPatch) -> None:
    run = decoder._run

    def cold(patches: torch.Tensor, past: object) -> torch.Tensor:
        for history in past.histories or ():  # type: ignore[attr-defined]
            history.zero_()
        return run(patches, past)  # type: ignore[arg-type]

    patch.setattr(decoder, "_run", cold)


@pytest.mark.parametrize(
    "inject",
    [
        wrong_rate,
        swapped_dilations,
        no_shift_by_rate,
        no_residual_connection,
        directions_alone,
        state_forgotten,
    ],
)
def test_a_fault_is_found(
    inject: Callable[[SoundDecoder, Path, pytest.MonkeyPatch], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoint = TINY_3.write(tmp_path)
    decoder = SoundDecoder(checkpoint, CPU)
    inject(decoder, checkpoint, monkeypatch)
    assert off(decode(decoder, golden(PLAIN, "latents"), 1), "plain") > PCM_TOLERANCE


def test_long_recordings_are_encoded_in_blocks_with_one_result(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = SoundEncoder(checkpoint, CPU)
    sound = np.tile(recording(0.96, 16_000, seed=2), 3)
    blocks = encoder.encode(torch.from_numpy(sound))
    assert len(blocks) > 2 * BLOCK_PATCHES
    monkeypatch.setattr("cantata_models.voxcpm2.encoder.BLOCK_PATCHES", 100)
    assert torch.equal(blocks, encoder.encode(torch.from_numpy(sound)))


def test_an_encoding_is_kept_by_sound_rate_and_use(checkpoint: Path) -> None:
    stage, sound = load_encoder(checkpoint, CPU), recording(0.2, 16_000, seed=1)
    asked = [
        VoxCpm2EncoderInput(sound, 16_000, VoxCpm2Mode.CLONE),
        VoxCpm2EncoderInput(sound, 24_000, VoxCpm2Mode.CLONE),
        VoxCpm2EncoderInput(sound, 16_000, VoxCpm2Mode.CONTINUATION),
        VoxCpm2EncoderInput(-sound, 16_000, VoxCpm2Mode.CLONE),
    ]
    assert len({stage.key(inputs) for inputs in asked}) == len(asked)
    assert stage.key(asked[0]) == stage.key(
        VoxCpm2EncoderInput(sound.copy(), 16_000, VoxCpm2Mode.CLONE)
    )
    outputs = stage.run([asked[0], VoxCpm2EncoderInput(sound, 16_000, VoxCpm2Mode.COMBINED)])
    lengths = [output["latents"].values.shape for output in outputs]  # type: ignore[index, union-attr]
    assert lengths == [(2, 64), (4, 64)]


@pytest.mark.parametrize(("rate", "count"), [(24_000, 1_001), (44_100, 4_410), (8_000, 333)])
def test_resampling_rounds_lengths_up(rate: int, count: int) -> None:
    sound = recording(count / rate + 1e-6, rate, seed=1)
    assert len(sound) == count
    assert len(resampled(sound, rate, 16_000)) == -(-count * 16_000 // rate)


def test_the_published_shapes(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED), encoding="utf-8")
    config = load_codec_config(tmp_path)
    assert (config.samples_per_patch, config.input_samples) == (7680, 2560)
    assert config.patch_seconds == pytest.approx(0.16)
    assert config.rate_row == 3


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("depthwise", False),
        ("use_noise_block", True),
        ("cond_out_layer", True),
        ("cond_type", "concat"),
        ("sr_bin_boundaries", 20_000),
    ],
)
def test_another_kind_of_decoder_is_named(tmp_path: Path, key: str, value: object) -> None:
    config = {**TINY, "audio_vae_config": {**TINY["audio_vae_config"], key: value}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"audio_vae_config: {key}"):
        load_codec_config(tmp_path)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TINY, 1)
    config = {**TINY, "audio_vae_config": TINY_STRETCHED["audio_vae_config"] | {"decoder_dim": 64}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"'decoder\.model\.1\.weight_v' must be \[64, 16, 1\]"):
        SoundDecoder(folder, CPU)


def test_either_format_of_weights_decodes_alike(checkpoint: Path, tmp_path: Path) -> None:
    pickled = use_pickles(TINY_3.write(tmp_path))
    patches = golden(PLAIN, "latents")[:2]
    ours, theirs = (decode(SoundDecoder(at, CPU), patches, 2) for at in (pickled, checkpoint))
    np.testing.assert_array_equal(ours, theirs)
