"""A talker gets every weight of a checkpoint; what is missing or does not fit is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata_layers.code_predictor import FusedLinear
from cantata_layers.parameters import ParameterLoader
from cantata_layers.weights import WeightMap

NAMES = WeightMap({"talker.books.{}.weight": "books.{}", "talker.model.{}": "{}"})
Tensors = dict[str, torch.Tensor]
Q, K, V, NORM = (
    f"talker.model.layers.0.{part}.weight" for part in ("q_proj", "k_proj", "v_proj", "norm")
)


class Talker(nn.Module):
    """A layer with a fused projection, and a stack of two tables."""

    def __init__(self) -> None:
        super().__init__()
        layer = {"qkv_proj": FusedLinear(3, {"q": 4, "k": 2, "v": 2}), "norm": nn.RMSNorm(3)}
        self.layers = nn.ModuleList([nn.ModuleDict(layer)])
        self.books = nn.Parameter(torch.empty(2, 5, 3))


def tensors() -> Tensors:
    shapes = {Q: (4, 3), K: (2, 3), V: (2, 3), NORM: (3,)}
    books = {f"talker.books.{index}.weight": (5, 3) for index in range(2)}
    return {name: torch.randn(shape) for name, shape in {**shapes, **books}.items()}


def load(found: Tensors) -> Talker:
    talker = Talker()
    loader = ParameterLoader(dict(talker.named_parameters()), NAMES, ["books"])
    loader.load_all(found.items(), Path("folder"))
    return talker


def test_parts_come_together() -> None:
    found = tensors()
    state = load(found).state_dict()
    fused = torch.cat([found[name] for name in (Q, K, V)])
    assert torch.equal(state["layers.0.qkv_proj.weight"], fused)
    books = torch.stack([found[f"talker.books.{index}.weight"] for index in range(2)])
    assert torch.equal(state["books"], books)


def test_a_rank_takes_its_share_as_vllms_loaders_do() -> None:
    """The second of two ranks, which share the inputs of a layer."""

    def take_share(parameter: nn.Parameter, tensor: torch.Tensor) -> None:
        share = tensor.narrow(1, 2, 2)
        assert share.shape == parameter.shape
        parameter.data.copy_(share)

    shared = nn.Parameter(torch.empty(3, 2))
    shared.weight_loader = take_share  # type: ignore[attr-defined]
    loader = ParameterLoader({"out.weight": shared}, WeightMap({"talker.model.{}": "{}"}))
    whole = torch.randn(3, 4)
    loader.load_all([("talker.model.out.weight", whole)], Path("folder"))
    assert torch.equal(shared, whole[:, 2:])
    with pytest.raises(ConfigError, match="does not fit"):
        loader.load("talker.model.out.weight", torch.randn(3, 3))


def without(name: str) -> Callable[[Tensors], object]:
    return lambda found: found.pop(name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without(NORM), rf"^folder: lacks weights of {NORM}$"),
        (without(K), rf"lacks weights of {K}$"),
        (without("talker.books.1.weight"), r"lacks weights of talker\.books\.1\.weight$"),
        (lambda found: found.update(new=torch.zeros(1)), "the talker has no parameter new"),
        (
            lambda found: found.update({"talker.model.new": torch.zeros(1)}),
            r"the talker has no parameter talker\.model\.new",
        ),
        (lambda found: found.update({V: torch.zeros(3, 3)}), rf"{V} of \[3, 3\] does not fit"),
        (
            lambda found: found.update({"talker.books.2.weight": torch.zeros(5, 3)}),
            r"books\.2\.weight of \[5, 3\] does not fit the talker: index 2",
        ),
    ],
)
def test_what_does_not_fit_is_named(change: Callable[[Tensors], object], message: str) -> None:
    found = tensors()
    change(found)
    with pytest.raises(ConfigError, match=message):
        load(found)
