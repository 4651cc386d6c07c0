"""What a checkpoint lacks, or has in another shape, is named; its products are exact per row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cantata.contract.data.errors import ConfigError
from cantata.stages.ar import build_stage
from cantata_models.qwen3_omni.numerics import check_numerics
from cantata_models.qwen3_omni.random_checkpoint import write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import TINY
from cantata_models.qwen3_omni.tests.talker_driver import DEPLOYMENT, SPEC

pytestmark = pytest.mark.vllm

Tensors = dict[str, torch.Tensor]
EXPERT = "talker.model.layers.1.mlp.experts.3.up_proj.weight"
HEAD = "talker.code_predictor.lm_head.14.weight"


def without(name: str) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        del tensors[name]

    return change


def cut(name: str) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[name] = tensors[name][:-1].clone()

    return change


def renamed(name: str, other: str) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[other] = tensors.pop(name)

    return change


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            without(EXPERT),
            r"lacks weights of talker\.model\.layers\.1\.mlp\.experts\.3\.up_proj\.weight",
        ),
        (cut(EXPERT), r"experts\.3\.up_proj\.weight of \[31, 64\] does not fit .* \[32, 64\]"),
        (renamed(EXPERT, EXPERT.replace("3", "4")), "expert 0 to 3"),
        (without(HEAD), r"lacks weights of talker\.code_predictor\.lm_head\.14"),
        (
            without("talker.hidden_projection.linear_fc1.bias"),
            r"lacks weights of talker\.hidden_proj",
        ),
    ],
)
def test_another_talker_is_refused(
    tmp_path: Path, change: Callable[[Tensors], None], message: str
) -> None:
    folder = write_checkpoint(tmp_path, TINY, 1)
    path = folder / "model-00002-of-00002.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    with pytest.raises(ConfigError, match=message):
        build_stage(SPEC, folder, DEPLOYMENT)


def test_products_are_exact_on_this_machine() -> None:
    report = check_numerics()
    assert report.exact, report.found
    assert "experts" in report.found
