"""What `precision: tf32` does to the decoder's sound, imitated on a CPU: its layers multiply inputs
that are rounded to ten bits, and add in float32. Random weights; attention's products are exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from cantata.contract.model.row_products import RowProduct
from cantata_layers import exact_layers
from cantata_models.qwen3_tts.codec import Qwen3TtsDecoder
from cantata_models.qwen3_tts.random_checkpoint import TINY_LARGE, write_checkpoint
from threads import threads

CPU = torch.device("cpu")
FRAMES = 40
WINDOW = 512
"""Samples of one spectrum: 21 ms."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("codec"), TINY_LARGE, "custom_voice", 0)


def round_to_bits(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Float32 with so many bits behind its leading one; TF32 has 10, bfloat16 has 7."""
    dropped = 23 - bits
    half = 1 << (dropped - 1)
    return ((x.contiguous().view(torch.int32) + half) & -(1 << dropped)).view(torch.float32)


def decode(checkpoint: Path, patch: pytest.MonkeyPatch, bits: int | None) -> torch.Tensor:
    """[samples] of the same random frames, with all products of rounded inputs."""

    class RoundingProduct(RowProduct):
        def __init__(self, weight: torch.Tensor, *typical_rows: int) -> None:
            assert bits is not None
            super().__init__(round_to_bits(weight, bits), *typical_rows)

        def __call__(self, rows: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            assert bits is not None
            return super().__call__(round_to_bits(rows, bits), bias)

    with patch.context() as patched:
        if bits is not None:
            patched.setattr(exact_layers, "RowProduct", RoundingProduct)
        decoder = Qwen3TtsDecoder(checkpoint, CPU)
        state, slot = decoder.init_state(1), torch.tensor([0])
        decoder.reset(state, slot)
        codes = torch.randint(
            decoder.codebook_size, (1, FRAMES, 16), generator=torch.Generator().manual_seed(0)
        )
        with torch.inference_mode():
            return decoder.decode(state, slot, codes)[0, :, 0]


def spectral_distance(sound: torch.Tensor, reference: torch.Tensor) -> float:
    """Root mean square difference of log spectra, in dB; what is 60 dB below the loudest does not
    count."""
    window = torch.hann_window(WINDOW)
    spectra = [
        torch.stft(x, WINDOW, window=window, return_complex=True).abs() for x in (sound, reference)
    ]
    least = spectra[1].max() * 1e-3
    ours, theirs = (20 * torch.log10(spectrum.clamp(min=least)) for spectrum in spectra)
    return float((ours - theirs).square().mean().sqrt())


@pytest.fixture
def distance(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], float]:
    reference = decode(checkpoint, monkeypatch, None)
    return lambda bits: spectral_distance(decode(checkpoint, monkeypatch, bits), reference)


def test_tf32_moves_spectra_by_less_than_half_a_decibel(distance: Callable[[int], float]) -> None:
    """0.21 dB when this was written, and 1.3 dB in bfloat16, which is why there is no such key."""
    exact, tf32, bfloat16 = distance(22), distance(10), distance(7)
    assert exact < 0.001
    assert tf32 < 0.5
    assert 4 * tf32 < bfloat16
