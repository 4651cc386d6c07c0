"""TF32 is one setting, in products and in convolutions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from pydantic import ValidationError

from cantata.config import CodecDeployment
from cantata.stages.common.precision import allow_tf32


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    yield
    products.allow_tf32, convolutions.allow_tf32 = before


@pytest.mark.parametrize("allowed", [True, False])
def test_products_and_convolutions_are_rounded_alike(allowed: bool) -> None:
    allow_tf32(allowed)
    assert torch.backends.cuda.matmul.allow_tf32 is allowed
    assert torch.backends.cudnn.allow_tf32 is allowed


def test_float32_is_the_default_and_other_precisions_are_refused() -> None:
    assert CodecDeployment().precision == "float32"
    with pytest.raises(ValidationError, match="'float32' or 'tf32'"):
        CodecDeployment(precision="fp8")  # type: ignore[arg-type]
