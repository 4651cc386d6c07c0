"""One table of names fills networks, names what does not fit, and specifies random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata_layers.random_rules import gain, specify, upsampling, values
from cantata_layers.weights import SAME_NAMES, WeightMap

NAMES = WeightMap(
    {
        "model.layers.{}.mlp_gen.{}": "drawn.{}.{}",
        "model.layers.{}.mlp.{}": "plain.{}.{}",
        "head.weight": "table",
    }
)
PUBLISHED = (
    "head.weight",
    *(f"model.layers.{index}.{part}.weight" for part in ("mlp_gen", "mlp") for index in range(2)),
)
Tensors = dict[str, torch.Tensor]


class Network(nn.Module):
    """Two lists of norms, and a table."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn, self.plain = (nn.ModuleList(nn.RMSNorm(3) for _ in range(2)) for _ in range(2))
        self.table = nn.Parameter(torch.empty(5, 3))


def empty() -> Network:
    with torch.device("meta"):
        return Network()


def tensors() -> Tensors:
    return {name: torch.randn(shape) for name, shape in NAMES.shapes(empty()).items()}


def test_names_translate_both_ways() -> None:
    assert tuple(NAMES.shapes(empty())) == PUBLISHED
    assert [NAMES.published(str(NAMES.own(name))) for name in PUBLISHED] == list(PUBLISHED)
    assert NAMES.own("model.layers.0.attn.weight") is None
    assert SAME_NAMES.own("a.b") == SAME_NAMES.published("a.b") == "a.b"
    with pytest.raises(KeyError):
        NAMES.published("other")


def test_only_files_with_names_of_the_map_are_read(tmp_path: Path) -> None:
    saved = tensors()
    save_file({**saved, "vision.weight": torch.zeros(1)}, tmp_path / "model.safetensors")
    found = dict(NAMES.read(tmp_path))
    assert found.keys() == saved.keys()
    network = empty()
    NAMES.fill(network, found.items(), tmp_path)
    assert torch.equal(network.table, saved["head.weight"])
    assert torch.equal(network.state_dict()["drawn.1.weight"], saved[PUBLISHED[2]])
    assert not network.table.requires_grad
    assert not network.training


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found.pop(PUBLISHED[0]), rf"lacks {PUBLISHED[0]}; see"),
        (lambda found: found.update(new=torch.zeros(1)), "has unknown new; see"),
        (
            lambda found: found.update({"head.weight": torch.zeros(5)}),
            r"has misshapen head\.weight \[5\], not \[5, 3\]; see",
        ),
        (lambda found: found.clear(), rf"lacks {', '.join(PUBLISHED[:4])} and 1 more; see"),
    ],
)
def test_what_does_not_fit_is_named_as_published(
    change: Callable[[Tensors], object], message: str
) -> None:
    found = tensors()
    change(found)
    with pytest.raises(ConfigError, match=message):
        NAMES.fill(empty(), found.items(), Path("folder"))


def test_rules_decide_how_weights_are_drawn() -> None:
    shapes = {"a.weight": (4, 9), "up.weight": (8, 2, 3), "norm.weight": (4,), "a.bias": (4,)}
    books = {f"book.{index}.sum": (2,) for index in range(3)}
    rules = {
        r"^up": upsampling(taps=2),
        r"a\.weight": gain(6.0),
        r"book\.(\d+)": values(1.0, 3.0, decay=0.5),
    }
    specs = {spec.name: (spec.std, spec.mean) for spec in specify(shapes | books, rules)}
    assert specs == {
        "a.weight": (2.0, 0.0),
        "up.weight": (0.25, 0.0),
        "norm.weight": (0.2, 1.0),
        "a.bias": (0.2, 0.0),
        "book.0.sum": (1.0, 3.0),
        "book.1.sum": (0.5, 1.5),
        "book.2.sum": (0.25, 0.75),
    }
    with pytest.raises(ValueError, match=r"no rule draws 'other'"):
        list(specify({"other": (1,)}, {}))
