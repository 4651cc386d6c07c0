"""The code predictor: its cache does not change results, and rows do not affect each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from cantata.contract.model.sampling import CodeSampling, sample_codes
from cantata_layers.code_predictor import CodePredictor, run_predictor_layers
from cantata_layers.qwen3_config import Qwen3Stack
from kernel_count import count_kernels

BOOKS = 6
STACK = Qwen3Stack(
    hidden_size=48,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=16,
    intermediate_size=64,
    vocab_size=40,
    rms_norm_eps=1e-6,
    rope_theta=10_000.0,
    max_positions=64,
)


PUBLISHED = Qwen3Stack(
    hidden_size=1024,
    layers=5,
    heads=16,
    kv_heads=8,
    head_dim=128,
    intermediate_size=3072,
    vocab_size=2048,
    rms_norm_eps=1e-6,
    rope_theta=1_000_000.0,
    max_positions=64,
)
"""The stack of Qwen3-TTS 1.7B."""
META = torch.device("meta")
EACH, NUMBERS = torch.ones(4, device=META), torch.ones(4, dtype=torch.int64, device=META)


@pytest.fixture(params=[48, 72], ids=["same width", "projected"])
def predictor(request: pytest.FixtureRequest) -> CodePredictor:
    torch.manual_seed(0)
    predictor = CodePredictor(STACK, request.param, BOOKS).requires_grad_(False)
    for parameter in predictor.parameters():
        parameter.normal_(std=parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 1.0)
    return predictor


def test_a_code_follows_from_all_codes_before_it(predictor: CodePredictor) -> None:
    """One pass over a whole frame without a cache chooses the same codes."""
    width = predictor.codec_embedding.shape[-1]
    hidden, code0 = torch.randn(8, width), torch.randn(8, width)
    codes = predictor(hidden, code0, lambda scores, book: scores.argmax(-1))
    later = [predictor.codec_embedding[book][codes[:, book]] for book in range(BOOKS - 2)]
    rows = predictor.small_to_mtp_projection(torch.stack((hidden, code0, *later), dim=1))
    for book in range(BOOKS - 1):
        last = run_whole(predictor, rows[:, : book + 2])
        assert torch.equal((last @ predictor.lm_head[book].T).argmax(-1), codes[:, book])


def run_whole(predictor: CodePredictor, rows: torch.Tensor) -> torch.Tensor:
    """[R, T, H] from the first position on -> [R, H]; in one pass."""
    cache = torch.zeros(STACK.layers, 2, len(rows), STACK.kv_heads, BOOKS, STACK.head_dim)
    cos_sin = (predictor.cos, predictor.sin)
    return run_predictor_layers(predictor.layers, predictor.norm, rows.clone(), 0, cos_sin, cache)


@pytest.mark.parametrize("few", [1, 2, 3, 8])
def test_rows_do_not_see_each_other(predictor: CodePredictor, few: int) -> None:
    """The number of rows has no effect either; torch's product sums 1, 2 or 3 rows differently."""
    width = predictor.codec_embedding.shape[-1]
    hidden, code0 = torch.randn(16, width), torch.randn(16, width)
    scores: dict[int, list[torch.Tensor]] = {few: [], 16: []}

    def watch(scores_now: torch.Tensor, book: int) -> torch.Tensor:
        scores[len(scores_now)].append(scores_now[:few].clone())
        return scores_now.argmax(-1)

    together = predictor(hidden, code0, watch)
    assert torch.equal(predictor(hidden[:few], code0[:few], watch), together[:few])
    for alone, company in zip(scores[few], scores[16], strict=True):
        assert torch.equal(alone, company)


def test_each_codebook_has_its_own_embedding(predictor: CodePredictor) -> None:
    codes = torch.randint(0, STACK.vocab_size, (3, BOOKS - 1))
    embedded = predictor.embed(codes)
    for book in range(BOOKS - 1):
        assert torch.equal(embedded[:, book], predictor.codec_embedding[book][codes[:, book]])


def take_best(scores: torch.Tensor, book: int) -> torch.Tensor:
    return scores.argmax(-1)


def draw(scores: torch.Tensor, book: int) -> torch.Tensor:
    return sample_codes(scores, EACH, CodeSampling(EACH, NUMBERS, EACH))


@pytest.mark.parametrize("choose", [take_best, draw])
def test_a_frame_takes_few_kernels_on_a_gpu(
    choose: Callable[[torch.Tensor, int], torch.Tensor],
) -> None:
    """In each of 15 passes: the first norm, seven kernels and a norm for each layer, the head, the
    choice, the look-up of the next row. Two stacks and a projection once; no last look-up."""
    with META:
        predictor = CodePredictor(PUBLISHED, 2048, 16).requires_grad_(False).bfloat16()
    hidden, code0 = torch.empty(2, 4, 2048, dtype=torch.bfloat16, device=META)
    counts = count_kernels(lambda: predictor(hidden, code0, choose))
    assert counts.total() == 15 * (1 + 5 * 8 + 3) + 2, counts
    assert counts["linear"] == 15 * (5 * 4 + 1) + 1, counts


def test_off_the_cpu_projected_embeddings_are_looked_up(predictor: CodePredictor) -> None:
    """The table that a CPU does without holds what it computes instead."""
    codes = torch.randint(STACK.vocab_size, (7,))
    assert predictor.projected is None
    expected = [predictor._embed_next(book, codes) for book in range(BOOKS - 1)]
    predictor.projected = torch.empty(BOOKS - 1, STACK.vocab_size, STACK.hidden_size)
    predictor.project_embeddings()
    for book in range(BOOKS - 1):
        assert torch.equal(predictor._embed_next(book, codes), expected[book])
