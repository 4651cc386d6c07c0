"""Weights from exported graphs: a module that is filled with them computes what ONNX Runtime makes
of the file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata_layers.onnx_weights import ExportedGraph
from cantata_layers.tests.onnx_parts import (
    FLOAT,
    MICROSOFT,
    write_model,
    write_node,
    write_tensor,
    write_value,
)

Floats = NDArray[np.float32]
DRAWN = np.random.default_rng(0)
SIZE, OUTPUTS, HIDDEN, MOMENTS = 6, 5, 4, 9


def draw(*shape: int) -> Floats:
    return DRAWN.standard_normal(shape).astype(np.float32)


def export(nodes: list[bytes], rank: int, **tensors: NDArray[np.generic]) -> bytes:
    """A graph from `x` to `y`; in names of tensors, `__` stands for a dot."""
    written = [write_tensor(name.replace("__", "."), one) for name, one in tensors.items()]
    return write_model(
        nodes, written, [write_value("x", FLOAT, 3)], [write_value("y", FLOAT, rank)]
    )


def run(model: bytes, x: Floats) -> Floats:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    made: Floats = session.run(None, {"x": x})[0]
    return made


def fill(model: bytes, module: nn.Module) -> nn.Module:
    found = ExportedGraph(model).find([name for name, _ in module.named_parameters()])
    module.load_state_dict({name: torch.from_numpy(one.copy()) for name, one in found.items()})
    return module.eval()


class Named(nn.Module):
    """One layer in a module, as the whole network has it."""

    def __init__(self, name: str, layer: nn.Module) -> None:
        super().__init__()
        self.add_module(name, nn.ModuleDict({"layer": layer}))
        self._layer = [layer]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self._layer[0](x)
        return made


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
def test_products(operator: str) -> None:
    """Their weights may be named by numbers; those of `MatMul` are turned."""
    turns = int(operator == "Gemm")
    attributes = {"transB": turns} if turns else {}
    nodes = [
        write_node("Flatten", ["x"], "flat", axis=2),
        write_node(
            operator, ["flat", "9"], "made", f"/outer/part/layer/{operator}", "", **attributes
        ),
        write_node("Add", ["made", "part.layer.bias"], "y"),
    ]
    weight = draw(OUTPUTS, SIZE) if turns else draw(SIZE, OUTPUTS)
    model = export(nodes, 2, **{"9": weight, "part__layer__bias": draw(OUTPUTS)})
    x = draw(1, MOMENTS, SIZE)
    module = fill(model, Named("part", nn.Linear(SIZE, OUTPUTS)))
    made = module(torch.from_numpy(x)[0]).detach().numpy()
    np.testing.assert_allclose(made, run(model, x), rtol=0, atol=1e-5)


def test_a_convolution_in_a_list() -> None:
    nodes = [write_node("Conv", ["x", "w", "b.cnn.0.1.bias"], "y", "/b/cnn.0/cnn.0.1/Conv")]
    model = export(nodes, 3, w=draw(OUTPUTS, SIZE, 3), b__cnn__0__1__bias=draw(OUTPUTS))
    x = draw(1, SIZE, MOMENTS)

    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cnn = nn.ModuleList([nn.Sequential(nn.Identity(), nn.Conv1d(SIZE, OUTPUTS, 3))])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.cnn[0](x)
            return made

    made = fill(model, Listed())(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(made, run(model, x), rtol=0, atol=1e-5)


def quantize(weight: Floats, axis: int) -> tuple[NDArray[np.uint8], Floats, NDArray[np.uint8]]:
    """Numbers of 8 bits, with a scale and a zero point for each place along an axis."""
    others = tuple(one for one in range(weight.ndim) if one != axis)
    low, high = weight.min(others, keepdims=True), weight.max(others, keepdims=True)
    scale = (high - low) / 255
    zero = np.round(-low / scale)
    whole = np.clip(np.round(weight / scale) + zero, 0, 255).astype(np.uint8)
    return whole, scale.ravel().astype(np.float32), zero.ravel().astype(np.uint8)


@pytest.mark.parametrize("is_quantized", [False, True])
def test_an_lstm_both_ways(is_quantized: bool) -> None:
    """The exporter leaves out the first part of a module's path if the module around it was not
    called itself."""
    gates = 4 * HIDDEN
    inner, recurrent, bias = draw(2, gates, SIZE), draw(2, gates, HIDDEN), draw(2, 2 * gates)
    tensors: dict[str, NDArray[np.generic]] = {"b": bias}
    if is_quantized:
        # Turned, as that operator has them.
        for name, weight in (("w", inner), ("r", recurrent)):
            parts = quantize(np.ascontiguousarray(weight.transpose(0, 2, 1)), 0)
            tensors |= dict(zip((name, f"{name}_s", f"{name}_z"), parts, strict=True))
        inputs = ["rows", "w", "r", "b", "", "", "", "", "w_s", "w_z", "r_s", "r_z"]
        operator, domain = "DynamicQuantizeLSTM", MICROSOFT
    else:
        tensors |= {"w": inner, "r": recurrent}
        inputs, operator, domain = ["rows", "w", "r", "b"], "LSTM", ""
    nodes = [
        write_node("Identity", ["x"], "rows"),
        write_node(
            operator,
            inputs,
            "y",
            f"/outer/layer/{operator}",
            domain,
            hidden_size=HIDDEN,
            direction="bidirectional",
        ),
    ]
    model = export(nodes, 4, **tensors)
    x = draw(MOMENTS, 1, SIZE)
    module = fill(model, Named("part", nn.LSTM(SIZE, HIDDEN, bidirectional=True)))
    made = module(torch.from_numpy(x))[0].detach().numpy()
    theirs = run(model, x).transpose(0, 2, 1, 3).reshape(MOMENTS, 1, 2 * HIDDEN)
    # That operator rounds what goes in to 8 bits, too.
    np.testing.assert_allclose(made, theirs, rtol=0, atol=0.05 if is_quantized else 1e-5)


def test_weights_of_8_bits() -> None:
    """A product has a scale and a zero point for each output, by whatever name; a table of rows has
    one of each."""
    weight, rows = draw(SIZE, SIZE), np.arange(12, dtype=np.uint8).reshape(4, 3)
    whole, scale, zero = quantize(weight, 1)
    nodes = [
        write_node("MatMulInteger", ["q", "w_quantized", "", "zeros"], "y", "/part/layer/MatMul"),
        write_node("DequantizeLinear", ["e", "part.rows.weight_scale", "zero"], "made"),
    ]
    tensors: dict[str, NDArray[np.generic]] = {
        "w_quantized": whole,
        "w_scale": scale,
        "zeros": zero,
        "part__rows__weight_quantized": rows,
        "part__rows__weight_scale": np.array(0.5, np.float32),
        "zero": np.array(7, np.uint8),
    }
    found = ExportedGraph(export(nodes, 3, **tensors)).find(["part.layer.weight", "rows.weight"])
    np.testing.assert_allclose(found["part.layer.weight"].T, weight, atol=float(scale.max()))
    np.testing.assert_array_equal(found["rows.weight"], (rows.astype(np.float32) - 7) / 2)


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda model: model[: len(model) // 2],
    "a text": lambda model: b"no network at all",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_no_onnx_file(fault: str) -> None:
    nodes = [write_node("MatMul", ["x", "w"], "y", "/part/layer/MatMul")]
    with pytest.raises(ConfigError, match="not a readable ONNX file"):
        ExportedGraph(BROKEN[fault](export(nodes, 3, w=draw(SIZE, OUTPUTS))))


def test_what_another_exporter_names_otherwise_is_not_found() -> None:
    nodes = [write_node("MatMul", ["x", "w"], "y", "MatMul_3")]
    model = export(nodes, 3, w=draw(SIZE, OUTPUTS))
    assert ExportedGraph(model).find(["part.layer.weight", "part.layer.bias"]) == {}
