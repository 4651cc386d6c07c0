"""The code predictor: its cache does not change results, and rows do not affect each other."""

from __future__ import annotations

import pytest
import torch

from cantata_layers.code_predictor import CodePredictor
from cantata_layers.qwen3_config import Qwen3Stack

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
    shape = (STACK.layers, 2, 8, STACK.kv_heads, BOOKS, STACK.head_dim)
    for layer, (keys, values) in zip(predictor.layers, torch.zeros(shape), strict=True):
        rows = layer(rows, 0, (predictor.cos, predictor.sin), keys, values)
    normed = predictor.norm(rows)
    for book in range(BOOKS - 1):
        scores = normed[:, book + 1] @ predictor.lm_head[book].T
        assert torch.equal(scores.argmax(-1), codes[:, book])


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
