"""A torch module's weights from an ONNX file that was exported from it.

The exporter names a graph's nodes by the modules that they come from
(`/decoder/ups.0/ConvTranspose`), and most weights as the module does; products of matrices are
turned, and an LSTM's gates have another order. Weights of 8 bits, as ONNX Runtime's dynamic
quantization writes them, become the numbers that they stand for.

Field numbers are those of `onnx.proto`. WHY not by the package `onnx`: whoever serves a voice on a
CPU would install 30 MB for five kinds of messages. `onnx_outputs` does without it, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError

Floats = NDArray[np.float32]
Numbers = NDArray[np.generic]

_TYPES: Mapping[int, np.dtype[np.generic]] = {
    1: np.dtype("<f4"),
    2: np.dtype("u1"),
    3: np.dtype("i1"),
    6: np.dtype("<i4"),
    7: np.dtype("<i8"),
    10: np.dtype("<f2"),
    11: np.dtype("<f8"),
}
"""Of a tensor's raw data, by `TensorProto.DataType`."""
_LISTS: Mapping[int, np.dtype[np.generic]] = {4: np.dtype("<f4"), 10: np.dtype("<f8")}
"""By field: numbers that are not raw."""
_PRODUCTS = ("MatMul", "MatMulInteger", "Gemm")
_WEIGHTED = (*_PRODUCTS, "Conv", "ConvInteger", "ConvTranspose", "LSTM", "DynamicQuantizeLSTM")
_ZERO_POINT: Mapping[str, int] = {"MatMulInteger": 3, "ConvInteger": 3}
"""Which input it is, of nodes whose second is the weight."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_ENDINGS = (".weight_ih_l0", ".weight_hh_l0", ".bias_ih_l0", ".bias_hh_l0")
_BACKWARDS = "_reverse"


@dataclass(frozen=True, slots=True)
class _Node:
    kind: str
    inputs: tuple[str, ...]
    turns_weight: bool
    """A product whose weight is [outputs, inputs]."""


class _Endings:
    """Dotted names, found by their last parts: an export may be of a module around the one that is
    filled."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = dict[str, list[str]]()
        for name in names:
            parts = name.split(".")
            for first in range(len(parts)):
                self._names.setdefault(".".join(parts[first:]), []).append(name)

    def find(self, ending: str) -> str | None:
        """The shortest name that ends so."""
        return min(self._names.get(ending, ()), key=len, default=None)

    def find_inner(self, ending: str) -> str | None:
        """The same, or the only one that ends so but for the first part, which an export lacks if
        a method was called there from outside."""
        inner = self._names.get(ending.partition(".")[2], ())
        return self.find(ending) or (inner[0] if len(inner) == 1 else None)


@dataclass(slots=True)
class ExportedGraph:
    """What an ONNX file has of weights and of the nodes that use them.

    Raises:
        ConfigError: it is no ONNX file.
    """

    model: bytes
    _tensors: dict[str, Numbers] = field(default_factory=dict)
    _zeros: dict[str, str] = field(default_factory=dict)
    """Name of a scale -> name of the zero point that goes with it."""
    _nodes: dict[str, _Node] = field(default_factory=dict)
    """The first one of each module that has a weight, by the module's path."""
    _tensor_names: _Endings = field(init=False)
    _modules: _Endings = field(init=False)

    def __post_init__(self) -> None:
        try:
            for number, graph in _read_fields(memoryview(self.model)):
                if number == 7 and isinstance(graph, memoryview):
                    self._read_graph(graph)
        except (ValueError, IndexError, KeyError) as error:
            raise ConfigError(f"not a readable ONNX file ({error})") from error
        self._tensor_names, self._modules = _Endings(self._tensors), _Endings(self._nodes)

    def find(self, names: Collection[str]) -> Mapping[str, Floats]:
        """The weights that are there, by the names that the module has for them.

        Args:
            names: of the module's weights; an export may have put it into others.

        Returns:
            Float32, of the shapes that torch has; those that are not found are left out.
        """
        found = {name: self._find_one(name) for name in names}
        return {name: weight for name, weight in found.items() if weight is not None}

    def _read_graph(self, graph: memoryview) -> None:
        for number, content in _read_fields(graph):
            if not isinstance(content, memoryview):
                continue
            if number == 5:
                name, tensor = _read_tensor(content)
                self._tensors[name] = tensor
            elif number == 1:
                self._read_node(content)

    def _read_node(self, content: memoryview) -> None:
        inputs, outputs, name, kind, turns = list[str](), list[str](), "", "", False
        for number, value in _read_fields(content):
            if not isinstance(value, memoryview):
                continue
            if number == 5:
                attribute = dict(_read_fields(value))
                label = bytes(_as_bytes(attribute[1])).decode()
                turns |= label == "transB" and attribute.get(3) == 1
                if label == "value" and 5 in attribute:
                    self._tensors[outputs[0]] = _read_tensor(_as_bytes(attribute[5]))[1]
                continue
            text = bytes(value).decode()
            inputs += [text] * (number == 1)
            outputs += [text] * (number == 2)
            name, kind = (text if number == 3 else name), (text if number == 4 else kind)
        if kind == "DequantizeLinear" and len(inputs) > 2:
            self._zeros[inputs[1]] = inputs[2]
        if kind in _WEIGHTED and "/" in name:
            self._nodes.setdefault(_name_module(name), _Node(kind, tuple(inputs), turns))

    def _find_one(self, name: str) -> Floats | None:
        for ending in _ENDINGS:
            if name.removesuffix(_BACKWARDS).endswith(ending):
                module = name.removesuffix(_BACKWARDS).removesuffix(ending)
                return self._find_gates(module, ending, int(name.endswith(_BACKWARDS)))
        module, _, kind = name.rpartition(".")
        node = self._find_node(module) if kind == "weight" else None
        if node is not None and self._is_known(node.inputs[1]):
            return self._read_weight(node)
        whole = self._tensor_names.find(name)
        if whole is not None:
            return self._tensors[whole].astype(np.float32)
        quantized = self._tensor_names.find(f"{name}_quantized")
        return None if quantized is None else self._restore(quantized, None, None)

    def _read_weight(self, node: _Node) -> Floats:
        place = _ZERO_POINT.get(node.kind)
        zero = node.inputs[place] if place is not None and place < len(node.inputs) else None
        weight = self._restore(node.inputs[1], zero, None)
        is_turned = node.kind in _PRODUCTS and not node.turns_weight
        return np.ascontiguousarray(weight.T) if is_turned else weight

    def _find_gates(self, module: str, ending: str, direction: int) -> Floats | None:
        """An LSTM's weights of one direction; torch's gates are input, forget, cell, output."""
        node = self._find_node(module)
        if node is None or not all(self._is_known(name) for name in node.inputs[1:4]):
            return None
        place = 1 + _ENDINGS.index(ending)
        is_quantized = node.kind == "DynamicQuantizeLSTM"
        if place > 2:
            both = self._restore(node.inputs[3], None, None)[direction]
            rows = np.split(both, 2)[place - 3]
        elif is_quantized:
            scale, zero = node.inputs[6 + 2 * place], node.inputs[7 + 2 * place]
            rows = self._restore(node.inputs[place], zero, scale, axis=0)[direction].T
        else:
            rows = self._restore(node.inputs[place], None, None)[direction]
        first, last, forget, cell = np.split(rows, 4)  # as ONNX has them: i, o, f, c
        joined: Floats = np.concatenate([first, forget, cell, last])
        return joined

    def _restore(
        self, name: str, zero: str | None, scale: str | None, axis: int | None = None
    ) -> Floats:
        """The numbers that a tensor stands for.

        Args:
            name: of the tensor.
            zero, scale: names of its zero point and its scale; None: those that are named after it.
            axis: along which both are; None: the first of the same length.
        """
        tensor = self._tensors[name]
        base = name.removesuffix("_quantized")
        if tensor.dtype.itemsize > 1:
            return tensor.astype(np.float32)
        scale = scale or f"{base}_scale"
        scales = self._tensors[scale].astype(np.float32)
        zeros = self._tensors[zero or self._zeros.get(scale, f"{base}_zero_point")]
        shape = [1] * tensor.ndim
        if scales.size > 1:
            along = tensor.shape.index(scales.size, 1 - (tensor.ndim > 2)) if axis is None else axis
            shape[along] = scales.size
        centred = tensor.astype(np.float32) - _spread(zeros, shape)
        made: Floats = centred * _spread(scales, shape)
        return made

    def _is_known(self, name: str) -> bool:
        return name in self._tensors

    def _find_node(self, module: str) -> _Node | None:
        path = self._modules.find_inner(module)
        return None if path is None else self._nodes[path]


def _spread(values: Numbers, shape: list[int]) -> Floats:
    """Values along one axis, or one for all."""
    numbers = values.astype(np.float32)
    return numbers.reshape(shape) if numbers.size == math.prod(shape) else numbers.reshape(-1)[:1]


def _name_module(node: str) -> str:
    """`/decoder/cnn.0/cnn.0.1/Conv` -> `decoder.cnn.0.1`: a list's name is in its modules', too."""
    steps = node.strip("/").split("/")[:-1]
    after = [*steps[1:], ""]
    return ".".join(
        step for step, next_ in zip(steps, after, strict=True) if step not in _above(next_)
    )


def _above(step: str) -> Collection[str]:
    """What a step's name begins with: `cnn.0.1` -> `cnn`, `cnn.0`."""
    parts = step.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _read_tensor(content: memoryview) -> tuple[str, Numbers]:
    shape, kind, name = list[int](), 0, ""
    data: Numbers | None = None
    loose = list[int]()
    for number, value in _read_fields(content):
        if number == 1:
            shape += [value] if isinstance(value, int) else list(_read_varints(value))
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number in (5, 7):
            loose += [value] if isinstance(value, int) else list(_read_varints(value))
        elif isinstance(value, memoryview):
            if number == 8:
                name = bytes(value).decode()
            elif number == 9:
                data = np.frombuffer(value, np.uint8)
            elif number in _LISTS:
                data = np.frombuffer(value, _LISTS[number])
    if kind not in _TYPES:
        return name, np.zeros(0, np.float32)  # texts and the like are no weights
    if data is None:
        # Negative ones are written as if of 64 bits without a sign.
        data = np.array(loose, np.uint64).view(np.int64).astype(_TYPES[kind])
    elif data.dtype == np.uint8:
        data = data.view(_TYPES[kind])
    return name, data.reshape(shape)


def _read_fields(content: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message: numbers as they are, all else as bytes. Raises ValueError: it is no
    message."""
    place = 0
    while place < len(content):
        head, place = _read_varint(content, place)
        number, kind = head >> 3, head & 7
        if kind == _VARINT:
            value, place = _read_varint(content, place)
            yield number, value
            continue
        if kind == _BYTES:
            length, place = _read_varint(content, place)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"a field of kind {kind}")
        if place + length > len(content):
            raise ValueError("it is cut off")
        yield number, content[place : place + length]
        place += length


def _read_varints(content: memoryview) -> Iterator[int]:
    place = 0
    while place < len(content):
        value, place = _read_varint(content, place)
        yield value


def _read_varint(content: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place


def _as_bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number where a message must be")
    return value
