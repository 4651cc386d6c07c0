"""The codec: the streaming contract, recordings, and faults that are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.signal import resample_poly

from cantata_models.pocket_tts.codec import FrameSpread, InterleavedRotary, MimiDecoder
from cantata_models.pocket_tts.encoder import (
    BLOCK_FRAMES,
    MimiEncoder,
    VoiceEncoder,
    end_in_pause,
    resampled,
)
from cantata_models.pocket_tts.prompt import PocketEncoderInput
from cantata_models.pocket_tts.tests.parity.scenarios import record, scenario_named, write
from cantata_models.pocket_tts.tests.parity.write_goldens import PCM_STRIDE
from cantata_models.pocket_tts.tests.stage_driver import Floats, golden
from threads import threads

CPU = torch.device("cpu")
TOLERANCE = 1e-4
PLAIN = scenario_named("plain")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The checkpoint behind the goldens."""
    with threads(1):
        yield write("tiny", tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture
def decoder(checkpoint: Path) -> MimiDecoder:
    return MimiDecoder(checkpoint, CPU)


def spoken() -> Floats:
    """[F, E + 1]: the frames of a golden, the last column without an effect."""
    latents = golden(PLAIN, "latents")
    return np.concatenate([latents, np.full((len(latents), 1), 7, np.float32)], axis=1)


def decode(decoder: MimiDecoder, frames: Floats, *lengths: int) -> Floats:
    """[T, E + 1] -> [N]: in chunks of these lengths, and what is left in chunks of the last."""
    state, slot = decoder.init_state(1), torch.tensor([0])
    parts, start, rest = [], 0, list(lengths)
    while start < len(frames):
        count = rest.pop(0) if len(rest) > 1 else rest[0]
        chunk = torch.from_numpy(frames[None, start : start + count])
        parts.append(decoder.decode(state, slot, chunk)[0, :, 0].numpy())
        start += count
    return np.concatenate(parts)


def off(ours: Floats) -> float:
    return float(np.abs(ours[::PCM_STRIDE] - golden(PLAIN, "pcm")).max())


@pytest.mark.parametrize("chunks", [(1,), (2, 3), (1, 7)])
def test_streaming_equals_the_whole_to_the_last_bit(
    decoder: MimiDecoder, chunks: tuple[int, ...]
) -> None:
    frames = spoken()
    whole = decode(decoder, frames, len(frames))
    assert off(whole) < TOLERANCE
    np.testing.assert_array_equal(decode(decoder, frames, *chunks), whole)


@pytest.mark.parametrize("count", [1, 3])
def test_a_row_does_not_depend_on_its_batch(decoder: MimiDecoder, count: int) -> None:
    generator = torch.Generator().manual_seed(1)
    frames = torch.randn(5, 2 * count, decoder.latent_size, generator=generator)
    state, slots = decoder.init_state(7), torch.tensor([6, 0, 3, 1, 5])
    parts = [decoder.decode(state, slots, part) for part in torch.split(frames, count, dim=1)]
    together = torch.cat(parts, dim=1)
    for row in range(5):
        alone = decode(decoder, frames[row].numpy(), count)
        np.testing.assert_array_equal(alone, together[row, :, 0].numpy())


def test_a_slot_is_new_after_reset_and_others_are_not(decoder: MimiDecoder) -> None:
    frames = torch.from_numpy(spoken())[None, :2].expand(2, -1, -1)
    state, both = decoder.init_state(2), torch.arange(2)
    first = decoder.decode(state, both, frames)
    decoder.reset(state, torch.tensor([1]))
    second = decoder.decode(state, both, frames)
    assert torch.equal(second[1], first[1])
    assert not torch.equal(second[0], first[0])


def no_fade(decoder: MimiDecoder, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decoder, "_fade", torch.ones_like(decoder._fade))


def no_mean(decoder: MimiDecoder, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decoder, "_mean", torch.zeros_like(decoder._mean))


def halves_rotated(decoder: MimiDecoder, patch: pytest.MonkeyPatch) -> None:
    def turned(self: InterleavedRotary, x: torch.Tensor) -> torch.Tensor:
        low, high = x.chunk(2, dim=-1)
        cos, sin = self._rotary.real, self._rotary.imag
        parts = (low * cos - high * sin, high * cos + low * sin)
        return torch.cat(parts, dim=-1)

    patch.setattr(InterleavedRotary, "__call__", turned)


def longer_window(decoder: MimiDecoder, patch: pytest.MonkeyPatch) -> None:
    for layer in decoder._transformer._layers:
        patch.setattr(layer._attention, "_window", 21)
    sizes = decoder._transformer._sizes
    changed = type(sizes)(sizes.size, sizes.heads, sizes.layers, 21, sizes.period, sizes.inner)
    patch.setattr(decoder._transformer, "_sizes", changed)


def no_scale_of_a_layer(decoder: MimiDecoder, patch: pytest.MonkeyPatch) -> None:
    layer = decoder._transformer._layers[1]
    first, second = layer._scales
    patch.setattr(layer, "_scales", [first, torch.ones_like(second)])


def no_overlap_of_frames(decoder: MimiDecoder, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FrameSpread, "_earlier", 0.0, raising=False)
    patch.delattr(decoder._spread, "_earlier")


FAULTS = (
    no_fade,
    no_mean,
    halves_rotated,
    longer_window,
    no_scale_of_a_layer,
    no_overlap_of_frames,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_heard(
    decoder: MimiDecoder,
    fault: Callable[[MimiDecoder, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault(decoder, monkeypatch)
    assert off(decode(decoder, spoken(), 4)) > 2 * TOLERANCE


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_resampling_is_scipy_s(rate: int) -> None:
    sound = np.random.default_rng(1).normal(0, 0.3, rate // 3 + 7).astype(np.float32)
    common = int(np.gcd(rate, 24_000))
    theirs = resample_poly(sound, 24_000 // common, rate // common)
    ours = resampled(torch.from_numpy(sound), rate, 24_000).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


def test_a_recording_ends_in_a_pause_however_long_its_silence(checkpoint: Path) -> None:
    loud = torch.full((4800,), 0.5)
    plain = end_in_pause(loud, 24_000)
    silent = end_in_pause(torch.cat([loud, torch.full((9600,), 1e-4)]), 24_000)
    assert torch.equal(plain, silent)
    assert len(plain) == 4800 + 1920
    assert not plain[4800:].any()
    assert torch.equal(plain[:4320], loud[:4320])


def test_a_long_recording_in_blocks_is_that_in_one(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = MimiEncoder(checkpoint, CPU)
    frames = BLOCK_FRAMES * 2 + 3
    sound = torch.randn(
        frames * encoder.samples_per_frame, generator=torch.Generator().manual_seed(2)
    )
    made = encoder.encode(sound)
    monkeypatch.setattr("cantata_models.pocket_tts.encoder.BLOCK_FRAMES", frames)
    assert torch.equal(encoder.encode(sound), made)
    assert len(made) == frames


def test_equal_recordings_are_encoded_once_and_silence_is_refused(checkpoint: Path) -> None:
    encoder = VoiceEncoder(checkpoint, CPU)
    samples = record(scenario_named("recording"))
    one, other = PocketEncoderInput(samples, 24_000), PocketEncoderInput(samples.copy(), 24_000)
    assert encoder.key(one) == encoder.key(other)
    assert encoder.key(one) != encoder.key(PocketEncoderInput(samples, 16_000))
    assert encoder.key(one) != encoder.key(PocketEncoderInput(samples[:-1], 24_000))
    (refused,) = encoder.run([PocketEncoderInput(np.zeros(9000, np.float32), 24_000)])
    assert "silent" in str(refused)
