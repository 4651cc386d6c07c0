"""Random numbers that are a function of (seed, frame, codebook), and what is drawn with them."""

from __future__ import annotations

import pytest
import torch

from cantata.contract.model.sampling import (
    CodeSampling,
    penalize_repetition,
    penalize_use,
    sample_codes,
)
from cantata.stages.ar.sampling import draw_counter_uniforms

FRAMES, CODEBOOKS = 4000, 16
REFERENCE = [[4094770, 2484438, 1841434], [8816129, 10559677, 11702493]]


def sampling(rows: int, temperature: float, top_k: int = 0, top_p: float = 1.0) -> CodeSampling:
    return CodeSampling(
        torch.full((rows,), temperature), torch.full((rows,), top_k), torch.full((rows,), top_p)
    )


def chi_squared(values: torch.Tensor, bins: int) -> float:
    """Of uniform numbers in [0, 1); about `bins` when they are uniform."""
    counts = torch.histc(values, bins=bins, min=0.0, max=1.0)
    expected = values.numel() / bins
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("seed", [0, 1, 2, -1, 2**63, 2**200 + 5])
def test_uniform(seed: int) -> None:
    values = draw_counter_uniforms(seed, FRAMES, CODEBOOKS)
    assert values.shape == (FRAMES, CODEBOOKS)
    assert values.dtype == torch.float32
    assert float(values.min()) >= 0.0
    assert float(values.max()) < 1.0
    # Six standard deviations of chi squared with 256 degrees of freedom.
    assert chi_squared(values.flatten(), 256) < 256 + 6 * (2 * 256) ** 0.5
    for codebook in range(CODEBOOKS):
        assert chi_squared(values[:, codebook], 64) < 64 + 6 * (2 * 64) ** 0.5


def test_neighbours_are_independent() -> None:
    values = draw_counter_uniforms(7, FRAMES, CODEBOOKS).double() - 0.5
    other = draw_counter_uniforms(8, FRAMES, CODEBOOKS).double() - 0.5
    pairs = {
        "codebooks": (values[:, :-1], values[:, 1:]),
        "frames": (values[:-1], values[1:]),
        "diagonal": (values[:-1, :-1], values[1:, 1:]),
        "seeds": (values, other),
    }
    for name, (left, right) in pairs.items():
        correlation = (left * right).mean() / (1 / 12)
        assert abs(float(correlation)) < 6 / left.numel() ** 0.5, name


def test_no_two_seeds_share_numbers() -> None:
    streams = torch.stack([draw_counter_uniforms(seed, 8, 4) for seed in range(500)])
    assert len(torch.unique(streams.view(500, -1), dim=0)) == 500
    # 16,000 draws from 2**24 numbers collide about eight times.
    assert len(torch.unique(streams)) > 16_000 - 40


def test_the_numbers_stay_what_they_are() -> None:
    """A seed that a caller noted down means the same speech in the next release."""
    values = draw_counter_uniforms(1234, 2, 3)
    expected = torch.tensor(REFERENCE, dtype=torch.float64) / 2**24
    assert torch.equal(values.double(), expected)


def test_a_longer_request_begins_like_a_shorter_one() -> None:
    assert torch.equal(draw_counter_uniforms(3, 10, 8), draw_counter_uniforms(3, 500, 8)[:10])


def test_draws_follow_the_distribution() -> None:
    logits = torch.tensor([0.1, 2.0, -1.0, 0.7, 1.4]).expand(40_000, -1)
    uniforms = draw_counter_uniforms(5, 40_000, 1)[:, 0]
    codes = sample_codes(logits, uniforms, sampling(40_000, temperature=0.8))
    found = torch.bincount(codes, minlength=5) / 40_000
    torch.testing.assert_close(found, (logits[0] / 0.8).softmax(0), atol=0.01, rtol=0.0)


def test_temperature_zero_takes_the_largest() -> None:
    logits = torch.randn(20, 30, generator=torch.Generator().manual_seed(0))
    codes = sample_codes(logits, torch.full((20,), 0.999), sampling(20, temperature=0.0))
    assert torch.equal(codes, logits.argmax(dim=-1))


def test_top_k_keeps_the_k_most_likely() -> None:
    logits = torch.randn(1, 30, generator=torch.Generator().manual_seed(1)).expand(2000, -1)
    uniforms = draw_counter_uniforms(1, 2000, 1)[:, 0]
    codes = sample_codes(logits, uniforms, sampling(2000, temperature=3.0, top_k=4))
    assert set(codes.tolist()) == set(logits[0].topk(4).indices.tolist())


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(2000, -1)
    uniforms = draw_counter_uniforms(2, 2000, 1)[:, 0]
    for top_p, kept in ((0.4, {0}), (0.6, {0, 1}), (0.85, {0, 1, 2}), (1.0, {0, 1, 2, 3})):
        codes = sample_codes(logits, uniforms, sampling(2000, temperature=1.0, top_p=top_p))
        assert set(codes.tolist()) == kept


def test_top_p_is_a_share_of_what_top_k_leaves() -> None:
    """Of 0.4 and 0.3 the first alone is more than a half, though of all codes it is not."""
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log().expand(2000, -1)
    uniforms = draw_counter_uniforms(2, 2000, 1)[:, 0]
    codes = sample_codes(logits, uniforms, sampling(2000, temperature=1.0, top_k=2, top_p=0.5))
    assert set(codes.tolist()) == {0}


def test_the_largest_uniform_number_stays_inside() -> None:
    logits = torch.randn(64, 500, generator=torch.Generator().manual_seed(2))
    uniforms = torch.full((64,), 1 - 2.0**-24)
    codes = sample_codes(logits, uniforms, sampling(64, temperature=1.0, top_k=3))
    assert (logits.topk(3).indices == codes[:, None]).any(dim=-1).all()


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    logits = torch.randn(16, 300, generator=torch.Generator().manual_seed(3))
    uniforms = draw_counter_uniforms(9, 16, 1)[:, 0]
    options = CodeSampling(
        torch.linspace(0.0, 1.5, 16), torch.arange(16), torch.linspace(0.5, 1.0, 16)
    )
    together = sample_codes(logits, uniforms, options)
    for row in range(16):
        part = slice(row, row + 1)
        alone = CodeSampling(options.temperature[part], options.top_k[part], options.top_p[part])
        assert sample_codes(logits[part], uniforms[part], alone) == together[row]


def test_repetition_penalty() -> None:
    logits = torch.tensor([[2.0, -2.0, 1.0], [2.0, -2.0, 1.0]])
    spoken = torch.tensor([[0, 1], [-1, -1]])
    penalized = penalize_repetition(logits, spoken, torch.tensor([2.0, 2.0]))
    assert penalized.tolist() == [[1.0, -4.0, 1.0], [2.0, -2.0, 1.0]]


def test_presence_and_frequency_penalties() -> None:
    """As OpenAI defines them: score - count * frequency - (count > 0) * presence."""
    logits = torch.tensor([[2.0, -2.0, 1.0]]).expand(4, -1)
    used = torch.tensor([[0, 1, 0]]).expand(4, -1).clone()
    used[3] = -1
    presence, frequency = torch.tensor([0.5, 0.0, 0.0, 1.0]), torch.tensor([0.0, 0.25, -1.0, 1.0])
    assert penalize_use(logits, used, presence, frequency).tolist() == [
        [1.5, -2.5, 1.0],
        [1.5, -2.25, 1.0],
        [4.0, -1.0, 1.0],
        [2.0, -2.0, 1.0],
    ]
