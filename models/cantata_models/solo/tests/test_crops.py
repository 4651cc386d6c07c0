"""Training crops: the decoder's output is the same as in streaming."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from torch.nn import functional

from cantata_models.solo.tests.small_models import SMALL, small_decoder
from cantata_models.solo.training.crops import (
    CROP_FRAMES,
    END_FRAMES,
    FIRST_SHARE,
    HEARD_FRAMES,
    LAST_SHARE,
    LEAD_FRAMES,
    ClipBank,
    CropMaker,
    Crops,
    compare_crops,
    decode_crops,
)
from cantata_models.solo.training.losses import SoundLoss
from cantata_models.solo.training.phone_classifier import PhoneClassifier

FRAME = SMALL.codec.samples_per_frame
CLIPS = (50, 70, 90)
"""Frames of each utterance."""
NO_INDICES = torch.empty(0, dtype=torch.int64)


@pytest.fixture
def bank(tmp_path: Path) -> ClipBank:
    paths = [tmp_path / f"{frames}.wav" for frames in CLIPS]
    for path, frames in zip(paths, CLIPS, strict=True):
        soundfile.write(path, np.zeros(frames * FRAME - 7, dtype=np.int16), 24_000)
    return ClipBank(paths, FRAME)


def test_a_crop_sounds_as_it_does_within_its_utterance() -> None:
    decoder = small_decoder()
    latents = torch.randn(2, LEAD_FRAMES + 5, SMALL.codec.latent_size)
    crops = Crops(np.zeros(2, dtype=np.int64), torch.tensor([1]), NO_INDICES)
    output = decode_crops(decoder, crops, latents)
    led_in = decoder.advance(decoder.init_state(1), latents[:1])[:, LEAD_FRAMES * FRAME :]
    begun = decoder.advance(decoder.init_state(1), latents[1:, LEAD_FRAMES:])
    torch.testing.assert_close(output, torch.cat([led_in, begun]))


def test_only_the_crop_is_learned_from() -> None:
    decoder = small_decoder()
    latents = torch.randn(1, LEAD_FRAMES + 2, SMALL.codec.latent_size, requires_grad=True)
    crops = Crops(np.zeros(1, dtype=np.int64), NO_INDICES, NO_INDICES)
    torch.autograd.backward(decode_crops(decoder, crops, latents).square().sum())
    assert latents.grad is not None
    assert not latents.grad[:, :LEAD_FRAMES].any()
    assert latents.grad[:, LEAD_FRAMES:].abs().amax(dim=2).all()


def test_beginnings_and_ends_are_drawn_more_often(bank: ClipBank) -> None:
    crops = CropMaker(bank, seed=0).draw(2000)
    begin = crops.starts + LEAD_FRAMES
    ends_there = np.isin(begin + CROP_FRAMES, np.cumsum(CLIPS))
    fresh = crops.fresh.numpy()
    assert np.array_equal(np.flatnonzero(np.isin(begin, (50, 120))), fresh)
    # A third of the starts is the start of the bank, which leaves no room for a lead.
    assert len(fresh) / 2000 == pytest.approx(FIRST_SHARE * 2 / 3, abs=0.04)
    assert ends_there.mean() == pytest.approx(LAST_SHARE, abs=0.05)
    assert np.array_equal(np.flatnonzero(ends_there), crops.ending.numpy())
    assert crops.starts.min() >= 0
    assert (begin + CROP_FRAMES).max() <= sum(CLIPS)
    assert bank.at(crops.starts[:3], HEARD_FRAMES).shape == (3, HEARD_FRAMES * FRAME)


def test_a_faint_last_burst_counts() -> None:
    decoder = small_decoder()
    loss = SoundLoss(PhoneClassifier(SMALL), SMALL.codec.sample_rate)
    ends = torch.tensor([0])
    generator = torch.Generator().manual_seed(3)
    speech = torch.randn(1, HEARD_FRAMES * FRAME, generator=generator) * 0.1
    speech[:, -END_FRAMES * FRAME :] = 0.0
    with_burst = speech.clone()
    with_burst[:, -4 * FRAME : -3 * FRAME] = torch.randn(1, FRAME, generator=generator) * 0.01
    late = functional.pad(speech, (decoder.lag, 0))[:, LEAD_FRAMES * FRAME : HEARD_FRAMES * FRAME]
    starts = np.zeros(1, dtype=np.int64)
    usual = Crops(starts, NO_INDICES, NO_INDICES)
    ending = Crops(starts, NO_INDICES, ends)
    missed, _ = compare_crops(loss, decoder, usual, late, with_burst)
    missed_at_the_end, figures = compare_crops(loss, decoder, ending, late, with_burst)
    assert missed_at_the_end > 1.5 * missed
    assert figures["end_spectral"] > figures["spectral"]
    assert compare_crops(loss, decoder, ending, late, speech)[0] < 0.01
