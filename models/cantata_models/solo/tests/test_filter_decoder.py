"""The streaming contract of the decoder with a source filter, and what its source does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cantata_models.solo.config import CodecConfig
from cantata_models.solo.networks.filter_decoder import (
    MIDDLE_LOG2_HZ,
    FilterCodecConfig,
    FilterDecoder,
)
from cantata_models.solo.networks.source_filter import (
    BINS,
    HOP,
    NOISE_HOPS,
    find_minimum_phase,
    interpolate_points,
)

SMALL_FILTER = FilterCodecConfig(
    heard_size=16,
    harmonic_points=24,
    noise_points=16,
    frame_channels=32,
    frame_blocks=1,
    hop_channels=32,
    hop_blocks=2,
    encoder=CodecConfig(encoder_channels=32, encoder_blocks=1, frame_channels=32, frame_blocks=1),
)


def make_small_decoder() -> FilterDecoder:
    """Gains that vary, so that every part is heard."""
    torch.manual_seed(0)
    decoder = FilterDecoder(SMALL_FILTER).eval().requires_grad_(False)
    torch.nn.init.normal_(decoder.out.weight, std=0.1)
    return decoder


def draw_latents(rows: int, frames: int) -> torch.Tensor:
    """[rows, frames, Z] with a moving pitch, voiced here and there."""
    generator = torch.Generator().manual_seed(1)
    latents = torch.randn(rows, frames, SMALL_FILTER.latent_size, generator=generator)
    pitch = SMALL_FILTER.heard_size
    latents[..., pitch : pitch + 8] *= 0.3
    latents[..., pitch + 8 :] = (latents[..., pitch + 8 :] > -0.5).float()
    return latents


@pytest.mark.parametrize("chunks", [(1,) * 5, (1, 4), (2, 3)])
def test_streaming_equals_the_whole(chunks: tuple[int, ...]) -> None:
    decoder, latents = make_small_decoder(), draw_latents(1, 5)
    state, slot = decoder.init_state(3), torch.tensor([1])
    pieces = torch.split(latents, list(chunks), dim=1)
    parts = [decoder.decode(state, slot, piece) for piece in pieces]
    assert [part.shape[1] for part in parts] == [n * decoder.samples_per_frame for n in chunks]
    whole = decoder.decode_all(latents)
    assert whole.abs().max() > 1e-3
    assert torch.equal(torch.cat(parts, dim=1)[..., 0], whole)


@pytest.mark.parametrize("batch", [2, 5])
def test_a_row_does_not_depend_on_its_batch(batch: int) -> None:
    decoder, latents = make_small_decoder(), draw_latents(batch, 2)
    together = decoder.decode_all(latents)
    for row in range(batch):
        assert torch.equal(decoder.decode_all(latents[row : row + 1])[0], together[row])


def test_a_long_stream_keeps_its_phase() -> None:
    """Far into a stream, the noise comes round, and turns add up without an error."""
    decoder, latents = make_small_decoder(), draw_latents(1, 3)
    whole, parts = decoder.init_state(1), decoder.init_state(1)
    for state in (whole, parts):
        state.place.fill_(NOISE_HOPS - 10)
        state.phase.fill_(0.625)
        state.hertz.fill_(1000 / 7)
    with torch.inference_mode():
        pieces = [decoder.advance(parts, piece) for piece in torch.split(latents, 1, dim=1)]
        assert torch.equal(torch.cat(pieces, dim=1), decoder.advance(whole, latents))
    assert int(whole.place) == 14
    assert torch.equal(whole.phase, parts.phase)


def test_it_is_causal_and_reset_makes_slots_new() -> None:
    decoder, latents = make_small_decoder(), draw_latents(1, 5)
    changed = latents.clone()
    changed[:, 3:] += 0.1
    ours, theirs = decoder.decode_all(latents), decoder.decode_all(changed)
    border = 3 * decoder.samples_per_frame
    assert torch.equal(ours[:, :border], theirs[:, :border])
    assert not torch.equal(ours[:, border:], theirs[:, border:])
    state, slots = decoder.init_state(2), torch.tensor([1])
    first = decoder.decode(state, slots, latents)
    decoder.reset(state, slots)
    assert torch.equal(decoder.decode(state, slots, latents), first)
    assert not any(bool(tensor[0].any()) for tensor in state.tensors())


def test_training_and_inference_paths_agree() -> None:
    decoder, latents = make_small_decoder(), draw_latents(2, 3)
    inferred = decoder.decode_all(latents)
    decoder.requires_grad_(True)
    trained = decoder.advance(decoder.init_state(2), latents)
    assert trained.requires_grad
    torch.testing.assert_close(trained.detach(), inferred, rtol=0, atol=1e-5)


def test_the_pitch_of_the_latents_is_heard() -> None:
    decoder = make_small_decoder()
    torch.nn.init.zeros_(decoder.out.weight)
    decoder.mean_gains[SMALL_FILTER.harmonic_points :] = -20
    hertz = 160.0  # 150 samples
    latents = torch.zeros(1, 6, SMALL_FILTER.latent_size)
    heard = SMALL_FILTER.heard_size
    latents[..., heard : heard + 8] = float(np.log2(hertz)) - MIDDLE_LOG2_HZ
    latents[..., heard + 8 :] = 1.0
    sound = decoder.decode_all(latents)[0, 4 * HOP :]
    assert sound.abs().max() > 0.01
    torch.testing.assert_close(sound[150:], sound[:-150], rtol=0, atol=1e-4)
    peaks = torch.fft.rfft(sound[: 150 * 40]).abs().topk(3).indices
    assert set((peaks % 40).tolist()) == {0}, "all strong parts are harmonics"


def test_the_fixed_phase_belongs_to_the_gains() -> None:
    """A filter of minimum phase has nothing before its beginning."""
    matrix = interpolate_points(24).double()
    assert torch.allclose(matrix.sum(dim=0), torch.ones(BINS, dtype=torch.float64), atol=1e-6)
    points = torch.linspace(-1, -4, 24, dtype=torch.float64) + torch.sin(torch.arange(24.0))
    gains = points @ matrix
    filters = torch.polar(gains.exp(), find_minimum_phase(gains))
    impulse = torch.fft.irfft(filters)
    assert impulse[512:].square().sum() < 1e-4 * impulse.square().sum()
    assert impulse[:128].square().sum() > 0.99 * impulse.square().sum()
