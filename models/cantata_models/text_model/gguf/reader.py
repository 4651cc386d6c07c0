"""The values and tensors of a GGUF file, with errors that name the file and the key."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError

T = TypeVar("T", int, float, str, bool)
_DAMAGES = (ValueError, IndexError, KeyError, OverflowError, MemoryError, struct.error)
"""What the package raises for a file that ends early or has impossible sizes."""
ARCHITECTURE = "general.architecture"
_PARTS = "split.count"
_PLAIN = frozenset({GGMLQuantizationType.F32, GGMLQuantizationType.F64})


class GgufFile:
    """A GGUF file.

    Raises:
        ConfigError: it is damaged, or one part of several.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._reader = GGUFReader(path)
        except _DAMAGES as error:
            raise ConfigError(f"{path}: a damaged or truncated GGUF file: {error}") from error
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        if (parts := self.find(_PARTS, int)) is not None and parts > 1:
            raise ConfigError(
                f"{path}: one of {parts} parts; join them with `llama-gguf-split --merge` first"
            )
        self.architecture = self.get(ARCHITECTURE, str)

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    @property
    def is_float32(self) -> bool:
        """Whether its matrices are neither quantized nor rounded."""
        matrices = (t for t in self._tensors.values() if len(t.shape) > 1)
        return all(tensor.tensor_type in _PLAIN for tensor in matrices)

    def find(self, key: str, kind: type[T]) -> T | None:
        """Return a value; None: the file has none. Raises ConfigError: the value is of another
        kind."""
        value = self._read_contents(key)
        if kind is float and type(value) is int:
            value = float(value)
        if value is not None and type(value) is not kind:
            raise ConfigError(f"{self.path}: {key} must be {kind.__name__}, not {value!r:.80}")
        return value

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return a value or the default. Raises ConfigError: the value is of another kind, or
        missing without a default."""
        value = self.find(key, kind)
        if value is None:
            if default is None:
                raise ConfigError(f"{self.path}: {key} is missing")
            return default
        return value

    def own(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return a value of this architecture; raises as `get`."""
        return self.get(f"{self.architecture}.{key}", kind, default)

    def list(self, key: str) -> tuple[Any, ...]:
        """Return a list's items; none if the file has no such list. Raises ConfigError: the value
        is no list."""
        value = self._read_contents(key)
        if value is not None and not isinstance(value, list):
            raise ConfigError(f"{self.path}: {key} must be a list, not {value!r:.80}")
        return tuple(value or ())

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape, the rows first. Raises ConfigError: there is no such tensor."""
        if name not in self._tensors:
            raise ConfigError(f"{self.path}: tensor {name} is missing")
        return tuple(int(size) for size in reversed(self._tensors[name].shape))

    def read(self, name: str) -> NDArray[np.float32]:
        """Return a tensor's values. Raises ConfigError: there is no such tensor, or its
        quantization is not known."""
        shape, tensor = self.shape(name), self._tensors[name]
        try:
            values = dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            raise ConfigError(
                f"{self.path}: {name} is quantized as {tensor.tensor_type.name}, which cannot be "
                "read; valid: F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, IQ1_S to IQ4_XS"
            ) from error
        # A copy: what is not quantized is a view of a file that cannot be written.
        return np.array(values, np.float32).reshape(shape)

    def _read_contents(self, key: str) -> Any:
        field = self._reader.get_field(key)
        if field is None:
            return None
        try:
            value = field.contents()
        except (*_DAMAGES, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.path}: {key} cannot be read: {error}") from error
        # A float32: its shortest decimal is what was meant, 1e-05 and not 9.999999747e-06.
        return float(str(np.float32(value))) if isinstance(value, float) else value


def list_blocks(names: tuple[str, ...]) -> Iterator[tuple[str, int | None, str]]:
    """Split tensors' names.

    Yields:
        The name, its layer (None: it belongs to none), and the name within the layer.
    """
    for name in names:
        head, _, rest = name.partition(".")
        number, _, inner = rest.partition(".")
        layer = int(number) if head == "blk" and number.isdigit() else None
        yield name, layer, name if layer is None else inner
