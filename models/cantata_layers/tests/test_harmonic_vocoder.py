"""The sound of spectra: the package's own samples, in blocks of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hibari import dsp

from cantata.contract.data.errors import RequestFailed
from cantata_layers import harmonic_vocoder as waveform
from cantata_layers.harmonic_vocoder import BINS, HOP, Spectra, draw_noise, synthesize

FRAMES = 61
SAME_DB = -80


@pytest.fixture(scope="module")
def spectra() -> Spectra:
    rng = np.random.default_rng(1)
    a, b, c, d, e = (rng.normal(-2, 1.5, (BINS, FRAMES)).astype(np.float32) for _ in range(5))
    pitch = np.where(rng.random(FRAMES) < 0.3, 0, rng.uniform(80, 300, FRAMES))
    return Spectra(a, b, c, d, e, pitch.astype(np.float32))


def expected(spectra: Spectra, seed: int) -> waveform.Floats:
    s = spectra
    rng = np.random.default_rng(seed)
    made: waveform.Floats = dsp.synth(
        s.harmonic, s.rotation, s.noise, s.free, s.phase, s.pitch, rng
    )
    return made


def joined(spectra: Spectra, seed: int, block: int) -> waveform.Floats:
    return np.concatenate(list(synthesize(spectra, draw_noise(seed, len(spectra.pitch)), (block,))))


def error_db(ours: waveform.Floats, theirs: waveform.Floats) -> float:
    return float(10 * np.log10(np.square(ours - theirs).sum() / np.square(theirs).sum()))


def test_it_is_the_packages_sound(spectra: Spectra) -> None:
    ours, theirs = joined(spectra, 7, 16), expected(spectra, 7)
    assert len(ours) == len(theirs) == FRAMES * HOP
    assert error_db(ours, theirs) < SAME_DB


@pytest.mark.parametrize("block", [1, 2, 3, 7, 40, FRAMES - 1, FRAMES, 500])
def test_blocks_of_any_size_make_the_same_samples(spectra: Spectra, block: int) -> None:
    """But for the rounding of FFTs, which depends on how many are made at once."""
    ours, whole = joined(spectra, 7, block), joined(spectra, 7, FRAMES)
    np.testing.assert_allclose(ours, whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5])
def test_short_sounds(spectra: Spectra, frames: int) -> None:
    parts = (getattr(spectra, name)[..., :frames] for name in Spectra.__slots__)
    assert len(joined(Spectra(*parts), 1, 2)) == frames * HOP


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SAMPLE_RATE", 24_100),
        ("_MIN_PITCH_HZ", 90.0),
        ("_TOP_HZ", 10_800.0),
        ("_MAX_LOG", 1.0),
        ("_WINDOW", np.roll(waveform._WINDOW, 1)),
        ("_SOURCE_WINDOW", waveform._SOURCE_WINDOW * np.float32(1.01)),
    ],
)
def test_a_fault_is_noticed(
    spectra: Spectra, name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = expected(spectra, 7)
    monkeypatch.setattr(waveform, name, value)
    assert error_db(joined(spectra, 7, 16), theirs) > SAME_DB


def test_other_outputs_are_refused(spectra: Spectra) -> None:
    whole = [getattr(spectra, name)[None] for name in Spectra.__slots__]
    assert len(Spectra.of(whole).pitch) == FRAMES
    with pytest.raises(RequestFailed, match="spectra"):
        Spectra.of([*whole[:4], whole[4][:, :-1], whole[5]])
